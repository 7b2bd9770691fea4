// The first hour of a new user: an empty home, a terminal, a browser, a model server and an MCP server of others.

import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { last, open, rule, say, setModel } from "./house.mjs";

const PEERS = process.env.EMBODY_TEST_PEERS;
const SERVER = process.env.EMBODY_TEST_POSTGRES;

/** Repeats until the value is there, for at most a minute. */
async function eventually(what, look) {
  const deadline = Date.now() + 60_000;
  for (;;) {
    const found = await look();
    if (found) return found;
    assert.ok(Date.now() < deadline, `${what}: not within a minute`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

/** The user's shell. Commands see the user's home, whose workspace is the default one. */
class Shell {
  constructor(home) {
    this.home = home;
    this.env = { HOME: home, PATH: `${join(PEERS, "bin")}:/usr/bin:/bin`, EMBODY_POLICY__CONTRACT_DELAY_MS: "0" };
  }

  /** Runs a command that must end with this code, and returns what it printed to stdout. */
  run(args, code = 0) {
    const done = spawnSync(process.env.EMBODY, args, { env: this.env, cwd: this.home, encoding: "utf8", timeout: 120_000 });
    assert.equal(done.status, code, `embody ${args.join(" ")}\n${done.stdout}\n${done.stderr}`);
    return done.stdout;
  }

  json(...args) { return JSON.parse(this.run([...args, "--json"])); }

  /** The same in a terminal of its own. */
  typed(line) {
    const done = spawnSync("script", ["--quiet", "--return", "--command", `'${process.env.EMBODY}' ${line}`, "/dev/null"],
      { env: this.env, cwd: this.home, encoding: "utf8", timeout: 120_000, stdio: ["ignore", "pipe", "pipe"] });
    assert.equal(done.status, 0, done.stdout);
    return done.stdout.replaceAll("\r", "");
  }
}

/** A database of its own on the test server. */
function database() {
  const name = `first_hour_${process.pid}`;
  const made = spawnSync("psql", [SERVER, "-qc", `CREATE DATABASE ${name}`], { encoding: "utf8" });
  assert.equal(made.status, 0, made.stderr);
  return SERVER.replace(/\/[^/]*$/, `/${name}`);
}

const RULES = [
  rule("good morning", { text: "Good morning to you." }),
  rule("write the list", { calls: [{ name: "write_file", arguments: { path: "list.txt", content: "milk" } }] }),
  rule("write the list", { text: "It is written." }, 1),
  rule("read the list", { calls: [{ name: "read_text_file", arguments: { path: "list.txt" } }] }),
  rule("read the list", { text: "It says $RESULT" }, 1),
  rule("Remind me of tea", { calls: [{ name: "notify_user", arguments: { text: "The tea is ready." } }] }),
  rule("Remind me of tea", { text: "Done." }, 1),
];

test("the whole first hour", async () => {
  const house = await open(RULES, null);
  const shell = new Shell(house.folder);
  const notes = join(house.folder, "notes");
  mkdirSync(notes);

  // A model, by the form: there is none yet.
  const page = await house.page();
  await page.locator("#no-model").waitFor();
  await setModel(page, house.modelUrl);
  await say(page, "good morning");
  await page.getByText("Good morning to you.").waitFor();

  // A server of others, which the running agent gets without a restart.
  shell.run(["server", "add", "files", "--", join(PEERS, "bin/server-filesystem"), notes]);
  assert.match(shell.run(["server", "list"]), /^files\s+ok/m);
  await say(page, "write the list");
  const card = page.locator(".approval");
  await card.waitFor();
  assert.match(await card.innerText(), /list\.txt/);
  await card.getByRole("button", { name: "Approve once" }).click();
  await page.getByText("It is written.").waitFor();
  assert.equal(readFileSync(join(notes, "list.txt"), "utf8"), "milk");

  // A rule: the next call of the same tool needs no approval.
  const config = join(house.workspace, "embody.toml");
  const rules = '\n[[policy.rule]]\ntools = ["files/write_file"]\ngate = "allow"\n';
  writeFileSync(config, readFileSync(config, "utf8") + rules);
  assert.match(shell.run(["reload"]), /policy/);
  await say(page, "write the list again");
  await page.getByText("It is written.").nth(1).waitFor();
  assert.equal(await card.count(), 0);
  await say(page, "read the list");
  await last(page).getByText("It says milk").waitFor();

  // Memory.
  shell.run(["memory", "add", "The spare key is in the blue box."]);
  assert.match(shell.run(["memory", "search", "where is the spare key?"]), /blue box/);

  // A schedule, and the notice that its run leaves.
  shell.run(["schedule", "add", "--in", "1s", "Remind me of tea"]);
  await page.locator("#notices-unread").getByText("1", { exact: true }).waitFor();
  await page.locator("#notices-open").click();
  await page.locator("#notices-list").getByText("The tea is ready.").waitFor();
  await page.locator("#notices-close").click();

  // What it cost, and what happened.
  assert.ok(shell.json("usage").total.requests >= 7);
  const today = shell.run(["today"]);
  assert.match(today, /Wrote 2 files \(files\)/);
  assert.match(shell.run(["thread", "list"]), /good morning/);

  // A backup, and the way to PostgreSQL and back.
  await house.down();
  const backup = join(house.folder, "backup.db");
  shell.run(["store", "backup", backup]);
  const before = shell.run(["audit", "export"]);
  const postgres = database();
  const sqlite = `sqlite://${join(house.folder, "copy.db")}`;
  shell.run(["store", "copy", `sqlite://${join(house.workspace, "embody.db")}`, postgres]);
  shell.run(["store", "copy", postgres, sqlite]);
  for (const store of [postgres, sqlite]) {
    assert.equal(shell.json("audit", "verify", "--store", store).intact, true, store);
    assert.equal(shell.run(["audit", "export", "--store", store]), before);
  }

  // It runs again as a service: without a terminal. The browser is still signed in, and the user gets another link.
  await house.up(new URL(house.base).host);
  await page.reload();
  await page.getByText("It is written.").first().waitFor();
  const link = shell.typed("open").split("\n").find((line) => line.startsWith("http"));
  const other = await house.stranger();
  await other.goto(link);
  await other.locator("#app").waitFor();
  shell.run(["audit", "verify"]);
  assert.deepEqual(house.problems, []);
});
