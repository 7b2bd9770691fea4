//! A rule's condition: an expression over the call. If it fails to evaluate, the rule is undecided and may only make things
//! stricter.

use std::cell::OnceCell;
use std::fmt;
use std::sync::Arc;

use cel::common::ast::{EntryExpr, Expr, IdedEntryExpr, LiteralValue};
use cel::{Context, ExecutionError, IdedExpr, Program, Value};
use serde_json::Value as Json;

use super::addresses::{Addresses, is_domain};
use super::raw_text::{self, RawTextTest};

const EXPRESSION_BYTES: usize = 4096;
/// Open brackets and ternaries within each other, for which the parser recurses deeply.
const NESTING: usize = 24;
/// The depth of an expression, which evaluation recurses into on a thread of the runtime.
const DEPTH: usize = 32;
/// Enough to parse any text within these limits.
const PARSER_STACK: usize = 64 * 1024 * 1024;

const VARIABLES: [&str; 6] = ["tool", "body", "args", "channel", "user", "session"];

pub(super) const ADDRESSES: &str = "addresses";
pub(super) const ALL_IN_DOMAIN: &str = "all_in_domain";

#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    pub tool: &'a str,
    pub body: &'a str,
    pub args: &'a Json,
    /// Whether the server receives members beside `arguments`. A condition on `args` is undecided then: it does not see them.
    pub has_extra: bool,
    pub channel: &'a str,
    pub user: &'a str,
    pub session: &'a str,
}

pub struct Condition {
    text: String,
    program: Program,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid condition `{text}`: {reason}")]
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
        let program = compile(text).map_err(wrong)?;
        let mut bound = Vec::new();
        bind(program.expression(), &mut bound);
        let is_known = |name: &&str| VARIABLES.contains(name) || bound.contains(name);
        if let Some(unknown) = program.references().variables().into_iter().find(|name| !is_known(name)) {
            return Err(wrong(format!(
                "unknown variable `{unknown}`; the variables are {}",
                VARIABLES.join(", ")
            )));
        }
        if let Some(reason) = wrong_domain(program.expression()) {
            return Err(wrong(reason));
        }
        Ok(Self { text: text.to_owned(), program })
    }

    /// Whether it looks at mail addresses.
    pub fn uses_addresses(&self) -> bool {
        let references = self.program.references();
        references.has_function(ADDRESSES) || references.has_function(ALL_IN_DOMAIN)
    }

    /// The tests of a part of an argument's text, which arguments can be written to pass.
    pub fn raw_text_tests(&self) -> Vec<RawTextTest> {
        raw_text::find(self.program.expression())
    }

    pub fn holds(&self, facts: &Facts<'_>) -> Option<bool> {
        self.holds_in(&Scene::new(facts))
    }

    pub(super) fn holds_in(&self, scene: &Scene<'_>) -> Option<bool> {
        if scene.facts.has_extra && self.program.references().has_variable("args") {
            return None;
        }
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
        let Facts { tool, body, args, channel, user, session, .. } = *self.facts;
        let mut context = Context::default();
        context.add_variable("args", args).ok()?;
        for (name, value) in
            [("tool", tool), ("body", body), ("channel", channel), ("user", user), ("session", session)]
        {
            context.add_variable(name, value).ok()?;
        }
        context.add_function(ADDRESSES, addresses).ok()?;
        context.add_function(ALL_IN_DOMAIN, all_in_domain).ok()?;
        Some(context)
    }
}

/// Fails if an address is unclear: a comparison with it would prove nothing, and an undecided rule may still ask and deny.
fn addresses(value: Value) -> Result<Value, ExecutionError> {
    let Addresses { clear, unclear, .. } = Addresses::new(&value);
    match unclear.first() {
        Some(text) => Err(ExecutionError::function_error(ADDRESSES, format!("`{text}` is unclear"))),
        None => Ok(clear.into_iter().collect::<Vec<String>>().into()),
    }
}

fn all_in_domain(value: Value, domain: Arc<String>) -> Result<bool, ExecutionError> {
    let domain = domain.to_ascii_lowercase();
    if !is_domain(&domain) {
        return Err(ExecutionError::function_error(
            ALL_IN_DOMAIN,
            format!("`{domain}` is not a domain name"),
        ));
    }
    Ok(Addresses::new(&value).all_in_domain(&domain))
}

/// The problem of a call of `all_in_domain` that can never be true.
fn wrong_domain(expression: &IdedExpr) -> Option<String> {
    if let Expr::Call(call) = &expression.expr
        && call.func_name == ALL_IN_DOMAIN
    {
        let domain = match (&call.target, call.args.as_slice()) {
            (None, [_, domain]) => literal(domain),
            _ => Some(""),
        };
        if let Some(domain) = domain.filter(|domain| !is_domain(&domain.to_ascii_lowercase())) {
            return Some(format!(
                "`{ALL_IN_DOMAIN}` takes a value and a domain, as in all_in_domain(args, \"example.com\"); `{domain}` is not a domain name"
            ));
        }
    }
    children(expression).into_iter().find_map(wrong_domain)
}

/// Parses on a thread with a large stack, and rejects what a usual stack could not evaluate.
fn compile(text: &str) -> Result<Program, String> {
    if nesting(text) > NESTING {
        return Err(format!("it has more than {NESTING} brackets or `?` within each other"));
    }
    let text = text.to_owned();
    let parse = move || {
        let program = Program::compile(&text).map_err(|error| in_short(&error.to_string()))?;
        match is_deeper_than(program.expression(), DEPTH) {
            true => Err(format!("it combines more than {DEPTH} operations in a row")),
            false => Ok(program),
        }
    };
    let thread = std::thread::Builder::new().stack_size(PARSER_STACK).spawn(parse);
    let parsed = thread.map_err(|error| error.to_string())?.join();
    parsed.unwrap_or_else(|_| Err("the parser failed".to_owned()))
}

/// At least the nesting of a text: brackets in strings count, and a `?` stays open until the next closing bracket.
fn nesting(text: &str) -> usize {
    let (mut open, mut most) = (Vec::new(), 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' | b'?' => open.push(byte),
            b')' | b']' | b'}' => while open.pop() == Some(b'?') {},
            _ => {}
        }
        most = most.max(open.len());
    }
    most
}

fn is_deeper_than(expression: &IdedExpr, limit: usize) -> bool {
    let mut level = vec![expression];
    for _ in 0..limit {
        level = level.into_iter().flat_map(children).collect();
    }
    !level.is_empty()
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
    if let Expr::Comprehension(each) = &expression.expr {
        bound.extend([each.iter_var.as_str(), each.accu_var.as_str()]);
        bound.extend(each.iter_var2.as_deref());
    }
    children(expression).into_iter().for_each(|part| bind(part, bound));
}

pub(super) fn literal(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => Some(text.inner()),
        _ => None,
    }
}

pub(super) fn children(expression: &IdedExpr) -> Vec<&IdedExpr> {
    match &expression.expr {
        Expr::Call(call) => call.target.iter().map(|target| &**target).chain(&call.args).collect(),
        Expr::Comprehension(each) => {
            vec![&each.iter_range, &each.accu_init, &each.loop_cond, &each.loop_step, &each.result]
        }
        Expr::List(list) => list.elements.iter().collect(),
        Expr::Select(select) => vec![&select.operand],
        Expr::Map(map) => map.entries.iter().flat_map(entry_children).collect(),
        Expr::Struct(record) => record.entries.iter().flat_map(entry_children).collect(),
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
    }
}

fn entry_children(entry: &IdedEntryExpr) -> Vec<&IdedExpr> {
    match &entry.expr {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(field) => vec![&field.value],
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
        evaluate(&Condition::new(text).unwrap(), args)
    }

    fn evaluate(condition: &Condition, args: &Json) -> Option<bool> {
        let facts = Facts {
            tool: "send_email",
            body: "mail",
            args,
            has_extra: false,
            channel: "web",
            user: "ann",
            session: "s1",
        };
        condition.holds(&facts)
    }

    #[test]
    fn a_condition_within_the_limits_fits_on_the_stack_of_a_runtime_thread() {
        let nested = |open: &str, inner: &str, close: &str, count: usize| {
            format!("{}{inner}{}", open.repeat(count), close.repeat(count))
        };
        let shapes: [(&str, &dyn Fn(usize) -> String); 9] = [
            ("parentheses", &|count| nested("(", "true", ")", count)),
            ("lists", &|count| nested("[", "", "]", count) + " == []"),
            ("maps", &|count| nested("{1:", "1", "}", count) + " == {}"),
            ("ternaries", &|count| nested("true ? ", "true", " : true", count)),
            ("later ternaries", &|count| "false ? true : ".repeat(count) + "true"),
            ("operators", &|count| "1+".repeat(count) + "1 == 1"),
            ("members", &|count| format!("args{} == 1", ".a".repeat(count))),
            ("indexes", &|count| format!("args{} == 1", "[0]".repeat(count))),
            ("and", &|count| "true && ".repeat(count) + "true"),
        ];
        for (name, shape) in shapes {
            let mut accepted = 0;
            for count in [1, 10, 20, 24, 50, 100, 500, 1000, 2000, 4000] {
                let text = shape(count);
                // As large as tokio's threads.
                let thread = std::thread::Builder::new().stack_size(2 * 1024 * 1024);
                let try_it = move || Condition::new(&text).map(|condition| evaluate(&condition, &json!({})));
                accepted += usize::from(thread.spawn(try_it).unwrap().join().unwrap().is_ok());
            }
            assert!((1..10).contains(&accepted), "{name}: {accepted}");
        }
    }

    #[test]
    fn conditions_look_at_the_call() {
        let args = json!({"to": "bob@example.com", "n": 3, "cc": ["a@x.org"], "deep": {"is": true}});
        for (text, expected) in [
            (r#"args.to == "bob@example.com""#, Some(true)),
            (r#"args.to.endsWith("@other.com")"#, Some(false)),
            ("args.n > 2", Some(true)),
            (r#"args.cc.exists(one, one == "a@x.org")"#, Some(true)),
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
    fn conditions_compare_addresses() {
        let args = json!({"to": "Bob <BOB@example.com>, carol@example.com", "cc": ["dave@x.org"]});
        for (text, expected) in [
            (r#"all_in_domain(args.to, "example.com")"#, Some(true)),
            (r#"all_in_domain(args.to, "Example.COM")"#, Some(true)),
            (r#"all_in_domain(args, "example.com")"#, Some(false)),
            (r#"all_in_domain({"to": args.to}, "example.com")"#, Some(true)),
            (r#"all_in_domain([args.to, args.cc], "example.com")"#, Some(false)),
            (r#"all_in_domain(args.subject, "example.com")"#, None),
            (r#"all_in_domain(args, user)"#, Some(false)),
            (r#"addresses(args) == ["bob@example.com", "carol@example.com", "dave@x.org"]"#, Some(true)),
            (r#""bob@example.com" in addresses(args)"#, Some(true)),
            (r#"size(addresses(args.cc)) == 1"#, Some(true)),
            (r#"size(addresses(args)) <= 2"#, Some(false)),
        ] {
            assert_eq!(holds(text, &args), expected, "{text}");
        }
        // Nothing can be compared with an unclear address.
        let args = json!({"to": "bob%40x.org@example.com"});
        assert_eq!(holds(r#""bob@x.org" in addresses(args)"#, &args), None);
        assert_eq!(holds(r#"all_in_domain(args, "example.com")"#, &args), Some(false));
    }

    #[test]
    fn a_domain_that_no_address_has_is_found_out_when_it_is_read() {
        for text in [
            r#"all_in_domain(args, "@example.com")"#,
            r#"all_in_domain(args, "*.example.com")"#,
            r#"tool == "x" && !all_in_domain(args, "")"#,
            r#"all_in_domain(args)"#,
            r#"args.all_in_domain("example.com")"#,
        ] {
            let error = Condition::new(text).unwrap_err().reason;
            assert!(error.contains("takes a value and a domain"), "{text}: {error}");
        }
    }

    #[test]
    fn what_is_no_condition_is_found_out_when_it_is_read() {
        for text in ["", "args.to ==", "args..to", "(", "nobody == 1", "arg.to == 1"] {
            assert!(Condition::new(text).is_err(), "{text}");
        }
        let error = Condition::new("nobody == 1").unwrap_err().to_string();
        assert!(error.contains("unknown variable `nobody`"), "{error}");
        let error = Condition::new("args.to ==").unwrap_err();
        assert_eq!(error.reason, "mismatched input '<EOF>' at 1:11");
        assert!(Condition::new(&"1 == 1 && ".repeat(1000)).is_err());
    }
}
