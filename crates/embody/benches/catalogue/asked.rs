//! What is searched for: questions that were written by hand for tools that people have, and others that say what a made
//! tool does in words that it does not use itself.

use serde_json::Value;

use super::made::{SERVICES, VERBS, name};

/// A question, and the tool that answers it.
pub(super) struct Question {
    pub(super) kind: &'static str,
    pub(super) text: String,
    pub(super) tool: String,
}

/// Every question whose tool is there.
pub(super) fn questions(tools: &[Value]) -> Vec<Question> {
    let is_there = |tool: &str| tools.iter().any(|known| known["name"] == tool);
    let by_hand = BY_HAND.iter().map(|(text, tool)| Question {
        kind: "by hand",
        text: (*text).to_owned(),
        tool: (*tool).to_owned(),
    });
    let mut questions: Vec<Question> = by_hand.filter(|question| is_there(&question.tool)).collect();
    questions.extend(in_other_words().filter(|question| is_there(&question.tool)));
    questions
}

/// One question for each service and two of its nouns, with another verb each time.
fn in_other_words() -> impl Iterator<Item = Question> {
    SERVICES.iter().enumerate().flat_map(|(number, (service, nouns))| {
        [0, 5].into_iter().map(move |offset| {
            let noun = nouns[(number + offset) % nouns.len()];
            let (verb, _) = VERBS[(number + offset) % VERBS.len()];
            let text = match verb {
                "create" => format!("add a {noun} to {service}"),
                "get" => format!("show me a {service} {noun}"),
                "list" => format!("browse all {noun}s of {service}"),
                "update" => format!("change a {noun} on {service}"),
                "delete" => format!("remove the {noun} from {service}"),
                "search" => format!("find a {noun} in {service}"),
                "archive" => format!("put a {service} {noun} into the archive"),
                _ => format!("{service}: {noun}s as CSV"),
            };
            Question { kind: "in other words", text, tool: name(service, noun, verb) }
        })
    })
}

const BY_HAND: [(&str, &str); 60] = [
    ("read a file", "read_text_file"),
    ("open several files at the same time", "read_multiple_files"),
    ("save text to disk as a new file", "write_file"),
    ("replace some lines in a source file", "edit_file"),
    ("show the folder structure", "directory_tree"),
    ("rename a file", "move_file"),
    ("find files whose name matches a pattern", "search_files"),
    ("which folders may I access?", "list_allowed_directories"),
    ("think step by step about a hard problem", "sequentialthinking"),
    ("download a web page", "fetch"),
    ("commit my changes", "git_commit"),
    ("unstage everything", "git_reset"),
    ("what time is it in Tokyo", "get_current_time"),
    ("press a button on a web page", "browser_click"),
    ("take a picture of the page", "browser_take_screenshot"),
    ("run javascript in the browser", "browser_evaluate"),
    ("dismiss the dialog in the browser", "browser_handle_dialog"),
    ("report a bug in the repository", "create_issue"),
    ("merge the PR", "merge_pull_request"),
    ("find leaked passwords in the repository", "list_secret_scanning_alerts"),
    ("where is this function defined? search the code", "search_code"),
    ("post to the team's slack channel", "slack_post_message"),
    ("recent messages in slack", "slack_get_channel_history"),
    ("mail something to Anna", "send_email"),
    ("prepare an email but do not send it", "draft_email"),
    ("put a meeting into my calendar", "create_event"),
    ("what is on my calendar this week", "list_events"),
    ("search in notion", "notion-search"),
    ("edit a notion page", "notion-update-page"),
    ("run a read-only SQL query", "query"),
    ("alter a table: run DDL", "apply_migration"),
    ("service logs of the last day", "get_logs"),
    ("delete the development branch", "delete_branch"),
    ("list pods in kubernetes namespace", "kubectl_get"),
    ("log in to a machine by ssh", "ssh_connect"),
    ("upload a file to an S3 bucket", "s3_upload"),
    ("run a shell command", "terminal_run"),
    ("get a secret from the vault", "vault_read_secret"),
    ("ask another language model", "chat_completion"),
    ("sum up a conversation", "summarize_conversation"),
    ("decode base64", "decode_base64"),
    ("make a random unique id", "generate_uuid"),
    ("hash a string", "sha256"),
    ("look something up on the internet", "web_search"),
    ("scrape a website", "firecrawl_scrape"),
    ("coordinates of an address", "maps_geocode"),
    ("give a customer the money back", "stripe_create_refund"),
    ("move a jira ticket to done", "jira_transition_issue"),
    ("comment on a linear issue", "linear_create_comment"),
    ("errors in sentry", "sentry_search_events"),
    ("code for a figma design", "figma_get_code"),
    ("publish a blog post", "wordpress_create_post"),
    ("turn HTML into markdown", "html_to_markdown"),
    ("start a docker container", "docker_run"),
    ("firewall rules of the database", "db_rules"),
    ("a user has forgotten the password", "reset_password"),
    ("react to a message with an emoji", "emoji_react"),
    ("send the user a push notification", "notify_user"),
    ("who changed what? audit trail", "audit_log"),
    ("weather in Lisbon", "get_weather"),
];
