// The reader's own versions, where a log shows them: the twin of kbtools/matching/versions.py. Its
// patterns come with the index.

import { expression } from "./pattern.js";

const canonical = (name) => name.toLowerCase().replace(/[-_.]+/g, "-");

/** Reads versions off logs, by the patterns of an index. */
export class VersionReader {
  constructor(versions) {
    this.patterns = versions.map(([name, patterns]) =>
      [name, patterns.map((pattern) => expression(pattern, { lines: true }))]);
  }

  /** Name → version, of what a text shows of its toolchain. */
  read(text) {
    const versions = {};
    for (const [name, patterns] of this.patterns)
      for (const pattern of patterns) {
        const match = pattern.exec(text);
        if (!match) continue;
        versions[name] = match[1];
        break;
      }
    return versions;
  }
}

/** Versions as a toolchain of which nothing else is known; `machine` names what is no package. */
export function asToolchain(versions, machine) {
  const packages = Object.create(null);
  for (const [name, version] of Object.entries(versions))
    if (!machine.includes(name)) packages[canonical(name)] = version;
  const gpus = versions.sm ? [{ name: "", sm: versions.sm }] : [];
  return {
    python: versions.python, cuda: versions.cuda, driver: versions.driver, gpus, packages,
  };
}
