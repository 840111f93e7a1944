// All literals of an index in one pass: ahocorasick_rs, which Python uses, is not here.

/** Every literal of an index in one pass over a text: Aho and Corasick's automaton. */
export class Literals {
  constructor(literals) {
    this.lengths = literals.map((literal) => literal.length);
    this.units = new Uint16Array(65536);
    this.width = 1;
    for (const literal of literals)
      for (let i = 0; i < literal.length; i++) {
        const unit = literal.charCodeAt(i);
        if (!this.units[unit]) this.units[unit] = this.width++;
      }
    const most = 1 + this.lengths.reduce((sum, length) => sum + length, 0);
    this.next = new Int32Array(most * this.width);
    this.own = new Int32Array(most).fill(-1); // the literal that ends in a state
    this.shorter = new Int32Array(most); // the next state in which one ends, too
    this.states = 1;
    literals.forEach((literal, number) => this.add(literal, number));
    this.link();
  }

  add(literal, number) {
    let state = 0;
    for (let i = 0; i < literal.length; i++) {
      const edge = state * this.width + this.units[literal.charCodeAt(i)];
      if (!this.next[edge]) this.next[edge] = this.states++;
      state = this.next[edge];
    }
    this.own[state] = number;
  }

  link() {
    const suffix = new Int32Array(this.states);
    const queue = [0];
    for (let i = 0; i < queue.length; i++) {
      const state = queue[i];
      this.shorter[state] = this.own[suffix[state]] >= 0 ? suffix[state] : this.shorter[suffix[state]];
      for (let unit = 1; unit < this.width; unit++) {
        const edge = state * this.width + unit;
        const after = state ? this.next[suffix[state] * this.width + unit] : 0;
        if (this.next[edge]) {
          suffix[this.next[edge]] = after;
          queue.push(this.next[edge]);
        } else this.next[edge] = after;
      }
    }
  }

  /** The number of a literal → the offsets at which it begins, in the order of their first ends. */
  occurrences(text) {
    const starts = new Map();
    const { next, units, width, own, shorter } = this;
    for (let i = 0, state = 0; i < text.length; i++) {
      state = next[state * width + units[text.charCodeAt(i)]];
      if (own[state] < 0 && !shorter[state]) continue;
      for (let end = own[state] < 0 ? shorter[state] : state; end; end = shorter[end]) {
        const literal = own[end];
        const start = i + 1 - this.lengths[literal];
        if (starts.has(literal)) starts.get(literal).push(start);
        else starts.set(literal, [start]);
      }
    }
    return starts;
  }
}
