// Loaded into a server before its own code: the clock stands still, chance is settled, short waits are shorter. So two
// runs with the same requests give the same answers, and nothing has to be left out of the comparison.
const NOW = 1700000000000;
const RealDate = Date;
globalThis.Date = class extends RealDate {
  constructor(...values) {
    super(...(values.length === 0 ? [NOW] : values));
  }
  static now() {
    return NOW;
  }
};
Math.random = () => 0.5;

let count = 0;
const crypto = require("node:crypto");
crypto.randomUUID = () => `00000000-0000-4000-8000-${String(++count).padStart(12, "0")}`;
crypto.randomBytes = (size) => Buffer.alloc(size, ++count);
require("node:module").syncBuiltinESMExports();

const wait = globalThis.setTimeout;
globalThis.setTimeout = (then, ms, ...values) => wait(then, ms > 0 && ms <= 1000 ? ms / 20 : ms, ...values);
