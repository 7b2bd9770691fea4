//! The page of `explain --html` in a real browser.

use std::path::Path;
use std::process::Command;

/// Moves the pointer over the soul's own words and leaves in the title what the page says about them.
const PROBE: &str = "<script>
const run = [...document.querySelectorAll('#prompt .from')].find((span) => span.textContent.includes('PROBE-WORDS'));
run.dispatchEvent(new PointerEvent('pointerover', { bubbles: true }));
const colours = new Set([...document.querySelectorAll('#prompt section')].map((one) => getComputedStyle(one).backgroundColor));
document.title = [document.getElementById('place').textContent, colours.size, document.querySelectorAll('#prompt section').length].join('|');
</script>";

#[test]
fn a_browser_shows_the_prompt_by_section_and_says_where_each_part_is_from() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("SOUL.md"), "PROBE-WORDS & <b>bold</b> \"quotes\"\n").unwrap();
    let page = folder.path().join("page.html");
    let output = Command::new(env!("CARGO_BIN_EXE_embody"))
        .args(["--workspace", folder.path().to_str().unwrap()])
        .args(["prompt", "explain", "--layout", "channel", "--html", page.to_str().unwrap()])
        .env_clear()
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let html = std::fs::read_to_string(&page).unwrap();
    assert!(!html.contains("http://") && !html.contains("https://"), "the page fetches something");
    std::fs::write(&page, html + PROBE).unwrap();
    let dom = in_browser(&page, folder.path());
    let title = dom.split("<title>").nth(1).and_then(|rest| rest.split("</title>").next()).unwrap();
    let parts: Vec<&str> = title.split('|').collect();
    assert_eq!(parts[0], "soul · SOUL.md:1");
    assert_eq!(parts[1], parts[2], "each section has a colour of its own: {title}");
    assert!(
        dom.contains("PROBE-WORDS &amp; &lt;b&gt;bold&lt;/b&gt;"),
        "markup in the prompt is shown, not used"
    );
}

fn in_browser(page: &Path, folder: &Path) -> String {
    let output = Command::new("chromium")
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--dump-dom",
        ])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--user-data-dir={}", folder.join("browser").display()))
        .arg(format!("file://{}", page.display()))
        .env("HOME", folder)
        .output()
        .expect("chromium runs; `./test` installs it");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
