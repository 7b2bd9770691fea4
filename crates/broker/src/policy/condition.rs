//! A rule's condition: an expression over the call. If it fails to evaluate, the rule is undecided and may only make things
//! stricter.

use std::cell::OnceCell;
use std::fmt;

use cel::common::ast::{EntryExpr, Expr};
use cel::{Context, IdedExpr, Program, Value};
use serde_json::Value as Json;

const EXPRESSION_BYTES: usize = 4096;

const VARIABLES: [&str; 6] = ["tool", "body", "args", "channel", "user", "session"];

#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub tool: &'a str,
    pub body: &'a str,
    pub args: &'a Json,
    pub channel: &'a str,
    pub user: &'a str,
    pub session: &'a str,
}

pub struct Condition {
    text: String,
    program: Program,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no condition: {reason}")]
pub struct WrongCondition {
    pub text: String,
    pub reason: String,
}

impl Condition {
    pub fn new(text: &str) -> Result<Self, WrongCondition> {
        let wrong = |reason: String| WrongCondition { text: text.to_owned(), reason };
        if text.len() > EXPRESSION_BYTES {
            return Err(wrong(format!("it is longer than {EXPRESSION_BYTES} bytes")));
        }
        let program = Program::compile(text).map_err(|error| wrong(in_short(&error.to_string())))?;
        let mut bound = Vec::new();
        bind(program.expression(), &mut bound);
        let is_known = |name: &&str| VARIABLES.contains(name) || bound.contains(name);
        if let Some(unknown) = program.references().variables().into_iter().find(|name| !is_known(name)) {
            return Err(wrong(format!("there is no `{unknown}`; it may use {}", VARIABLES.join(", "))));
        }
        Ok(Self { text: text.to_owned(), program })
    }

    pub fn holds(&self, facts: &Facts<'_>) -> Option<bool> {
        self.holds_in(&Scene::new(facts))
    }

    pub(super) fn holds_in(&self, scene: &Scene<'_>) -> Option<bool> {
        match self.program.execute(scene.context()?) {
            Ok(Value::Bool(holds)) => Some(holds),
            _ => None,
        }
    }
}

/// A call as the context of conditions. Created once for all rules, because it copies the arguments.
pub(super) struct Scene<'a> {
    facts: &'a Facts<'a>,
    context: OnceCell<Option<Context<'static, 'static>>>,
}

impl<'a> Scene<'a> {
    pub(super) fn new(facts: &'a Facts<'a>) -> Self {
        Self { facts, context: OnceCell::new() }
    }

    fn context(&self) -> Option<&Context<'static, 'static>> {
        self.context.get_or_init(|| self.made()).as_ref()
    }

    fn made(&self) -> Option<Context<'static, 'static>> {
        let Facts { tool, body, args, channel, user, session } = *self.facts;
        let mut context = Context::default();
        context.add_variable("args", args).ok()?;
        for (name, value) in
            [("tool", tool), ("body", body), ("channel", channel), ("user", user), ("session", session)]
        {
            context.add_variable(name, value).ok()?;
        }
        Some(context)
    }
}

/// Shortens a parser message with a diagram to one line: `mismatched input '<EOF>' at 1:11`.
fn in_short(error: &str) -> String {
    let line = error.lines().next().unwrap_or_default();
    let Some((position, message)) =
        line.strip_prefix("ERROR: <input>:").and_then(|rest| rest.split_once(": "))
    else {
        return line.to_owned();
    };
    let message = message.strip_prefix("Syntax error: ").unwrap_or(message);
    let message = message.split_once(" expecting ").map_or(message, |(start, _)| start);
    format!("{message} at {position}")
}

/// Collects the variables that comprehensions bind.
fn bind<'a>(expression: &'a IdedExpr, bound: &mut Vec<&'a str>) {
    match &expression.expr {
        Expr::Call(call) => {
            call.target.iter().map(|target| &**target).chain(&call.args).for_each(|part| bind(part, bound))
        }
        Expr::Comprehension(each) => {
            bound.extend([each.iter_var.as_str(), each.accu_var.as_str()]);
            bound.extend(each.iter_var2.as_deref());
            for part in [&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result] {
                bind(part, bound);
            }
        }
        Expr::List(list) => list.elements.iter().for_each(|part| bind(part, bound)),
        Expr::Select(select) => bind(&select.operand, bound),
        Expr::Map(map) => map.entries.iter().for_each(|entry| bind_entry(&entry.expr, bound)),
        Expr::Struct(record) => record.entries.iter().for_each(|entry| bind_entry(&entry.expr, bound)),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => {}
    }
}

fn bind_entry<'a>(entry: &'a EntryExpr, bound: &mut Vec<&'a str>) {
    match entry {
        EntryExpr::MapEntry(entry) => {
            [&entry.key, &entry.value].into_iter().for_each(|part| bind(part, bound))
        }
        EntryExpr::StructField(field) => bind(&field.value, bound),
    }
}

impl fmt::Debug for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Condition({})", self.text)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn holds(text: &str, args: &Json) -> Option<bool> {
        let facts =
            Facts { tool: "send_email", body: "mail", args, channel: "web", user: "ann", session: "s1" };
        Condition::new(text).unwrap().holds(&facts)
    }

    #[test]
    fn conditions_look_at_the_call() {
        let args = json!({"to": "bob@example.com", "n": 3, "cc": ["a@x.org"], "deep": {"is": true}});
        for (text, expected) in [
            (r#"args.to.endsWith("@example.com")"#, Some(true)),
            (r#"args.to.endsWith("@other.com")"#, Some(false)),
            ("args.n > 2", Some(true)),
            (r#"args.cc.exists(one, one.endsWith("@x.org"))"#, Some(true)),
            ("args.deep.is", Some(true)),
            (
                r#"channel == "web" && user == "ann" && tool.startsWith("send_") && body == "mail""#,
                Some(true),
            ),
            (r#"has(args.bcc) && size(args.bcc) > 0"#, Some(false)),
            (r#"args.to.matches("^bob@")"#, Some(true)),
            ("args.missing == 1", None),
            ("args.to > 3", None),
            ("args.n", None),
            ("1 / 0 == 1", None),
        ] {
            assert_eq!(holds(text, &args), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_condition_is_found_out_when_it_is_read() {
        for text in ["", "args.to ==", "args..to", "(", "nobody == 1", "arg.to == 1"] {
            assert!(Condition::new(text).is_err(), "{text}");
        }
        let error = Condition::new("nobody == 1").unwrap_err().to_string();
        assert!(error.contains("there is no `nobody`"), "{error}");
        let error = Condition::new("args.to ==").unwrap_err();
        assert_eq!(error.reason, "mismatched input '<EOF>' at 1:11");
        assert!(Condition::new(&"1 == 1 && ".repeat(1000)).is_err());
    }
}
