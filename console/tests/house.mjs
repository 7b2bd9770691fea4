// `embody up` with a scripted model, and a browser in front of it. The environment says where the programs are:
// EMBODY (the binary), EMBODY_SCRIPTED (crates/agent/examples/scripted), EMBODY_TEST_BROWSER (what `tools/browser` installed).

import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after } from "node:test";

const need = (name) => process.env[name] ?? (() => { throw new Error(`${name} is not set`); })();
const { chromium } = createRequire(join(need("EMBODY_TEST_BROWSER"), "package.json"))("playwright-core");

const FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync"];

/** The first line that a program prints. */
function firstLine(program) {
  return new Promise((resolve, reject) => {
    let text = "";
    program.stdout.on("data", (data) => {
      text += data;
      if (text.includes("\n")) resolve(text.split("\n")[0]);
    });
    program.on("exit", (code) => reject(new Error(`it ended with ${code} before it said anything`)));
  });
}

const ended = (program) => new Promise((resolve) => {
  if (program.exitCode !== null) resolve(program.exitCode);
  else program.on("exit", resolve);
});

/**
 * A workspace with a model that answers by these rules; without rules, none. With the configuration `null` the model runs, but the
 * workspace is empty: it is the default one of a new user.
 */
export class House {
  static async open(rules, config = "") {
    const house = new House();
    house.folder = mkdtempSync(join(tmpdir(), "embody-page-"));
    house.workspace = config === null ? join(house.folder, ".embody") : house.folder;
    if (rules) {
      // What the form for a model asks it.
      if (config === null) rules = [...rules, rule("Reply with the word ok.", { text: "ok" })];
      writeFileSync(join(house.folder, "script.json"), JSON.stringify(rules));
      house.model = spawn(need("EMBODY_SCRIPTED"), [join(house.folder, "script.json"), join(house.folder, "model.jsonl")],
        { stdio: ["ignore", "pipe", "inherit"] });
      house.modelUrl = `${await firstLine(house.model)}/v1`;
      house.ports = config === null ? new URL(house.modelUrl).port : "";
      if (config !== null) config = `[model]\nbase_url = "${house.modelUrl}"\nmodel = "scripted"\n${config}`;
    }
    if (config !== null) writeFileSync(join(house.folder, "embody.toml"), config);
    await house.up();
    house.browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: FLAGS });
    return house;
  }

  get env() {
    // Model servers that happen to run on this machine are not looked for.
    return { PATH: process.env.PATH, HOME: this.folder, TELEGRAM_BOT_TOKEN: "1:nobodys", EMBODY_MODEL_PORTS: this.ports ?? "" };
  }

  async up(listen = "127.0.0.1:0") {
    this.embody = spawn(need("EMBODY"), ["--workspace", this.workspace, "--log", "error", "up", "--listen", listen],
      { env: this.env, stdio: ["ignore", "pipe", "inherit"] });
    this.url = await firstLine(this.embody);
    this.base = this.url.split("/#")[0];
  }

  /** Ends it as an operator does, and says how it ended. */
  async down() {
    this.embody.kill("SIGTERM");
    return ended(this.embody);
  }

  /** A token of a user. */
  token(user, scope) {
    const made = spawnSync(need("EMBODY"), ["--workspace", this.workspace, "token", "add", "--user", user, "--scope", scope, "--json"],
      { env: this.env, encoding: "utf8" });
    return JSON.parse(made.stdout).token;
  }

  /** A page that the owner has signed in to. What goes wrong in it fails the test. */
  async page(options = {}) {
    const page = await this.stranger(options);
    await page.goto(this.url);
    await page.locator("#app").waitFor();
    return page;
  }

  /** A page that somebody has signed in to with a token. */
  async pageOf(user, scope, options = {}) {
    const page = await this.stranger(options);
    await page.goto(this.base);
    await page.locator("#secret").fill(this.token(user, scope));
    await page.keyboard.press("Enter");
    await page.locator("#app").waitFor();
    return page;
  }

  /** A browser of its own in which nobody has signed in. */
  async stranger(options = {}) {
    const page = await (await this.browser.newContext({ viewport: { width: 1100, height: 720 }, ...options })).newPage();
    this.problems ??= [];
    page.on("pageerror", (error) => this.problems.push(String(error)));
    page.on("console", (message) => {
      if (message.type() === "error" && !message.text().includes("401")) this.problems.push(message.text());
    });
    page.setDefaultTimeout(30_000);
    return page;
  }

  async close() {
    await this.browser?.close();
    if (this.embody.exitCode === null) await this.down();
    this.model?.kill();
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Says something in the page. */
export async function say(page, text) {
  await page.locator("#text").fill(text);
  await page.keyboard.press("Enter");
}

/** Fills in the form for the model in the page of the owner. */
export async function setModel(page, url, name = "scripted") {
  await page.locator("#model-url").fill(url);
  await page.locator("#model-name").fill(name);
  await page.getByRole("button", { name: "Test and save" }).click();
}

/** @type {House[]} */
const houses = [];
after(async () => { for (const house of houses) await house.close(); });

/** A house that is closed when the tests are over. */
export async function open(rules, config) {
  const house = await House.open(rules, config);
  houses.push(house);
  return house;
}

export const ASKS = "[policy]\nask_wait_s = 60\n[telegram]\napi_url = \"http://127.0.0.1:9\"\n";
export const rule = (user, reply, results = 0) => ({ when: { user, results }, reply });
export const last = (page) => page.locator("#messages > li").last();
