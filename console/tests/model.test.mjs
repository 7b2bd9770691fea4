// The form for the model, which the page shows while none is configured.

import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { last, open, rule, say, setModel } from "./house.mjs";

const KEY = "sk-proj-a1B2c3D4e5F6g7H8i9J0k1L2";
const config = (house) => join(house.workspace, "embody.toml");

/** What the page shows once the agent has a model. */
const saved = (page) => page.locator("#empty h2", { hasText: "Talk to assistant" });

test("a model is tested, and saved with its key in a file of its own", async () => {
  const house = await open([rule("Hello", { text: "Hi." })], null);
  const page = await house.page();
  await page.locator("#no-model").waitFor();
  await page.locator("#model-key").fill(KEY);
  await setModel(page, house.modelUrl);
  await saved(page).waitFor();
  const [name] = readdirSync(house.workspace).filter((name) => name.startsWith("model-"));
  assert.equal(readFileSync(config(house), "utf8"), `[model]\nbase_url = "${house.modelUrl}"\nmodel = "scripted"\napi_key_file = "${name}"\n`);
  const file = join(house.workspace, name);
  assert.equal(readFileSync(file, "utf8"), `${KEY}\n`);
  assert.equal(statSync(file).mode & 0o777, 0o600);
  await say(page, "Hello");
  await last(page).getByText("Hi.").waitFor();
  const left = await page.evaluate(() => document.documentElement.outerHTML + [...document.querySelectorAll("input")].map((input) => input.value).join());
  assert.ok(!left.includes(KEY));
  assert.deepEqual(house.problems, []);
});

test("a found server is one click away", async () => {
  const house = await open([], null);
  const page = await house.page();
  await page.getByRole("button", { name: "scripted (a server)" }).click();
  await saved(page).waitFor();
  assert.equal(readFileSync(config(house), "utf8"), `[model]\nbase_url = "${house.modelUrl}"\nmodel = "scripted"\n`);
});

test("a model that does not answer is not saved, and what was written stays", async () => {
  const house = await open([], null);
  const page = await house.page();
  await setModel(page, "http://127.0.0.1:9/v1", "mine");
  const problem = page.locator("#model-error");
  await problem.waitFor();
  assert.match(await problem.innerText(), /is not available.*Check that the server is running/s);
  assert.ok(!existsSync(config(house)));
  assert.equal(await page.locator("#model-name").inputValue(), "mine");
  // Something said meanwhile does not take the form away.
  await say(page, "Hello?");
  await page.locator(".note").waitFor();
  assert.equal(await page.locator("#model-name").inputValue(), "mine");
  // The browser reports the refused request in its console; nothing else is wrong.
  house.problems = house.problems.filter((text) => !text.includes("422"));
  assert.deepEqual(house.problems, []);
  await setModel(page, house.modelUrl);
  await saved(page).waitFor();
  assert.ok(existsSync(config(house)));
});

test("the provider says where it is, and others see no form", async () => {
  const house = await open(null);
  const page = await house.page();
  await page.locator("#model-provider").selectOption("anthropic");
  assert.equal(await page.locator("#model-url").getAttribute("placeholder"), "https://api.anthropic.com");
  assert.equal(await page.locator("#model-key-env").getAttribute("placeholder"), "ANTHROPIC_API_KEY");
  assert.equal(await page.locator("#model-found").isHidden(), true);
  const ann = await house.pageOf("ann", "chat");
  await ann.locator("#no-model").waitFor();
  assert.equal(await ann.locator("#no-model input").count(), 0);
  assert.deepEqual(house.problems, []);
});
