// The patterns of an index, in JavaScript's own dialect.

/**
 * A pattern of the index as a RegExp, with the meaning that Python and RE2 give it.
 *
 * The `\s`, `.`, `^` and `$` of JavaScript include more spaces and line ends than theirs. With
 * `lines`, `^` and `$` are those of a line. `most` limits how often `*` and `+` repeat: a text may
 * be long, and a RegExp may take quadratic time on it.
 */
export function expression(source, { lines = false, most = 0, flags = "" } = {}) {
  let translated = "";
  let inClass = false;
  for (let i = 0; i < source.length; i++) {
    const sign = source[i];
    if (sign === "\\") {
      const escape = source[++i];
      if (escape === "s") translated += inClass ? "\\t-\\r " : "[\\t-\\r ]";
      else if (escape === "S") translated += inClass ? "\\0-\\x08\\x0e-\\x1f!-\\uffff" : "[^\\t-\\r ]";
      else translated += sign + escape;
    } else if (inClass || sign === "[") {
      inClass = sign !== "]";
      translated += sign;
    } else if (sign === ".") translated += "[^\\n]";
    else if (sign === "^") translated += lines ? "(?<![^\\n])" : sign;
    else if (sign === "$") translated += lines ? "(?![^\\n])" : "(?![^\\n]|\\n[^])";
    else if (most && (sign === "*" || sign === "+")) translated += `{${sign === "*" ? 0 : 1},${most}}`;
    else translated += sign;
  }
  return new RegExp(translated, flags);
}
