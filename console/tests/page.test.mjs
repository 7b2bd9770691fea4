// The page in a real browser, with everything behind it but the model.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { ASKS, last, open, rule, say } from "./house.mjs";

const SLOW = Array.from({ length: 60 }, (_, number) => `word${number}`).join(" ");

test("the types of the page hold", () => {
  const folder = fileURLToPath(new URL("..", import.meta.url));
  const files = readdirSync(folder).filter((name) => name.endsWith(".js")).map((name) => join(folder, name));
  const compiler = join(process.env.EMBODY_TEST_BROWSER, "node_modules/typescript/bin/tsc");
  const options = ["--allowJs", "--checkJs", "--noEmit", "--strict", "--target", "es2022", "--module", "es2022",
    "--moduleResolution", "bundler", "--lib", "es2023,dom,dom.iterable,dom.asynciterable"];
  const checked = spawnSync(process.execPath, [compiler, ...options, ...files], { encoding: "utf8" });
  assert.equal(checked.status, 0, checked.stdout);
});

test("a code signs in once, and a reload stays in", async () => {
  const house = await open(null);
  const page = await house.page();
  assert.equal(new URL(page.url()).hash, "", "the code does not stay in the address");
  await page.reload();
  await page.locator("#app").waitFor();
  const other = await (await house.browser.newContext()).newPage();
  await other.goto(house.url);
  await other.locator("#signin-error").waitFor();
  assert.match(await other.locator("#signin-error").innerText(), /was used already/);
  await page.locator("#signout").click();
  await page.locator("#signin").waitFor();
  await page.reload();
  await page.locator("#signin").waitFor();
  assert.deepEqual(house.problems, []);
});

test("the page shows a configuration that cannot be applied, until it is right", async () => {
  const house = await open(null);
  const page = await house.page();
  const shown = page.locator("#configuration");
  const file = join(house.workspace, "embody.toml");
  writeFileSync(file, "[policy]\nask_wait_s = \"soon\"\n");
  await shown.getByText("embody.toml cannot be used").waitFor();
  assert.match(await shown.innerText(), /previous configuration is in force[\s\S]*ask_wait_s/);
  writeFileSync(file, "[telegram]\nallow_users = [7]\n");
  await shown.getByText("Restart embody up to apply").waitFor();
  assert.match(await shown.innerText(), /telegram/);
  writeFileSync(file, "[policy]\nask_wait_s = 5\n");
  await shown.waitFor({ state: "hidden" });
  assert.deepEqual(house.problems, []);
});

// issue 6, must hold 5
test("without a model the page has a form for it, and keeps what was written", async () => {
  const house = await open(null);
  const page = await house.page();
  const card = await page.locator("#no-model").innerText();
  for (const part of ["No model is configured", "Provider", "Base URL", "embody.toml"]) assert.ok(card.includes(part), card);
  await say(page, "Hello?");
  const note = page.locator(".note");
  await note.waitFor();
  assert.match(await note.innerText(), /No model is configured[\s\S]*\[model\][\s\S]*base_url/);
  assert.equal(await page.locator("#text").inputValue(), "Hello?");
  assert.deepEqual(house.problems, []);
});

// spec: S-08
test("an answer streams, its Markdown is drawn, and its markup is only text", async () => {
  const text = "# Plan\n\n1. **Tea** at `noon`\n2. [more](https://example.com/a) [no](javascript:alert(1))\n\n" +
    "<img src=x onerror=alert(1)> <script>alert(2)</script>\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n```sh\nls -l\n```\n";
  const house = await open([rule("plan", { text, chunk: 5, delay_ms: 2 })]);
  const page = await house.page();
  await say(page, "A plan <b>please</b>");
  await page.locator("#stop").waitFor({ state: "hidden" });
  const words = last(page).locator(".words");
  await words.locator("pre code").waitFor();
  assert.equal(await words.locator("strong").innerText(), "Tea");
  assert.equal(await words.locator("a").count(), 1);
  assert.equal(await words.locator("a").getAttribute("href"), "https://example.com/a");
  assert.equal(await words.locator("img, script").count(), 0);
  assert.equal(await words.locator("td").count(), 2);
  assert.ok((await words.innerText()).includes("<img src=x onerror=alert(1)>"));
  assert.equal(await page.locator("#messages .mine").innerText(), "A plan <b>please</b>");
  assert.match(await page.locator("#threads a[aria-current] .name").innerText(), /^A plan <b>please/);
  assert.match(await page.locator("#title").innerText(), /^A plan <b>please/);
  // Drawn from the store it is the same.
  const drawn = await words.innerHTML();
  await page.reload();
  await last(page).locator("pre code").waitFor();
  assert.equal(await last(page).locator(".words").innerHTML(), drawn);
  assert.deepEqual(house.problems, []);
});

test("a turn goes on while the page is away, and a reload takes it up again", async () => {
  const house = await open([rule("slowly", { text: SLOW, chunk: 4, delay_ms: 40 })]);
  const page = await house.page();
  await say(page, "slowly");
  await page.getByText("word3 ").waitFor();
  await page.reload();
  // It is still going on: the page can stop it.
  await page.locator("#stop").waitFor();
  await page.getByText("word59").waitFor();
  await page.locator("#stop").waitFor({ state: "hidden" });
  assert.equal((await last(page).innerText()).trim(), SLOW, "nothing is missing, nothing stands there twice");
  assert.equal(await page.locator("#messages > li").count(), 2);
  assert.deepEqual(house.problems, []);
});

test("an answer can be stopped, and the conversation goes on", async () => {
  const house = await open([
    rule("and now", { text: "Now I listen." }),
    rule("for ever", { text: "on and on ", repeat: 5000, chunk: 10, delay_ms: 20 }),
  ]);
  const page = await house.page();
  await say(page, "talk for ever");
  await page.getByText("on and on").first().waitFor();
  await page.locator("#stop").click();
  await page.getByText("Stopped.").waitFor();
  await page.locator("#send").waitFor();
  await say(page, "and now?");
  await page.getByText("Now I listen.").waitFor();
  await page.reload();
  await page.getByText("Now I listen.").waitFor();
  assert.match(await page.locator("#messages > li").nth(1).innerText(), /^on and on.*Stopped\.$/s, "what was said stays");
  assert.deepEqual(house.problems, []);
});

// spec: N-10, N-12
test("a call that others will see waits for a yes, shown exactly", async () => {
  const message = { channel: "telegram", to: "4711", text: "See you at noon.\u202e" };
  const house = await open([
    rule("tell bob", { calls: [{ name: "send_message", arguments: message }] }),
    rule("tell bob", { text: "It is sent." }, 1),
  ], ASKS);
  const page = await house.page();
  await say(page, "tell bob");
  const card = page.locator(".approval");
  await card.waitFor();
  const text = await card.innerText();
  for (const part of ["See you at noon.", "Who sees it", "other people will see it"]) assert.ok(text.includes(part), text);
  const title = await card.getByRole("heading").innerText();
  assert.match(title, /^Send message to 4711 and telegram\? \d+ characters, embody\/send_message$/);
  assert.ok(!text.includes("\u202e"), "hidden characters are made visible");
  assert.match(await page.locator("#waiting").innerText(), /1 call waits/);
  await last(page).locator(".tool[data-state=waiting]").waitFor();
  assert.match(await last(page).locator(".tool").innerText(), /waits for your approval/);
  for (const size of [{ width: 1100, height: 720 }, { width: 360, height: 640 }]) {
    await page.setViewportSize(size);
    const button = await card.getByRole("button", { name: "Deny" }).boundingBox();
    const composer = await page.locator("#composer").boundingBox();
    assert.ok(button.y + button.height <= composer.y, "both answers are in view with the text");
  }
  await card.getByRole("button", { name: "Approve once" }).click();
  await page.getByText("It is sent.", { exact: true }).waitFor();
  assert.equal(await last(page).locator(".tool").getAttribute("data-state"), "done");
  await card.waitFor({ state: "detached" });
  assert.deepEqual(house.problems, []);
});

// spec: N-10
test("a denied call does not happen", async () => {
  const house = await open([
    rule("tell bob", { calls: [{ name: "send_message", arguments: { channel: "telegram", to: "4711", text: "No." } }] }),
    rule("tell bob", { text: "As you wish." }, 1),
  ], ASKS);
  const page = await house.page();
  await say(page, "tell bob");
  await page.locator(".approval").getByRole("button", { name: "Deny" }).click();
  await page.getByText("As you wish.").waitFor();
  for (const again of [false, true]) {
    if (again) await page.reload();
    await last(page).locator(".tool[data-state=denied]").waitFor();
    assert.match(await last(page).locator(".tool").innerText(), /send_message\s+was denied/);
  }
  assert.deepEqual(house.problems, []);
});

test("it works with the keyboard alone on a narrow screen", async () => {
  const house = await open([rule("", { text: "Hello." })]);
  const page = await house.page({ viewport: { width: 360, height: 640 }, colorScheme: "dark" });
  await say(page, "one");
  await page.getByText("Hello.").waitFor();
  const wide = await page.evaluate(() => document.documentElement.scrollWidth);
  assert.ok(wide <= 360, `${wide} pixels`);
  await page.locator("#menu").focus();
  await page.keyboard.press("Enter");
  await page.locator("#threads a").waitFor({ state: "visible" });
  await page.keyboard.press("Escape");
  await page.locator("#threads a").waitFor({ state: "hidden" });
  assert.deepEqual(house.problems, []);
});

test("it ends within its time while somebody listens, and the page says so", async () => {
  const house = await open([rule("for ever", { text: "on and on ", repeat: 5000, chunk: 10, delay_ms: 20 })]);
  const page = await house.page();
  await say(page, "for ever");
  await page.getByText("on and on").first().waitFor();
  assert.equal(await house.down(), 0);
  await page.getByText("Could not reach embody; reconnecting.").waitFor();
});
