//! Tests of a part of an argument's text in a condition, such as `args.to.endsWith("@example.com")`. They are no ground to allow a
//! call: the caller writes the rest of the text.

use cel::IdedExpr;
use cel::common::ast::{Expr, operators};

use super::condition::{ADDRESSES, ALL_IN_DOMAIN, children, literal};

/// A test of a part of an argument's text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawTextTest {
    /// The expression that it tests, as in `args.to`; `args` if that is longer.
    target: String,
    function: String,
    text: String,
}

impl RawTextTest {
    /// What the test does, and a value that passes it.
    pub fn problem(&self) -> String {
        let Self { target, function, text } = self;
        let passes = match self.domain() {
            Some(domain) => format!("`evil@other.example,carol@{domain}` passes"),
            None => match function.as_str() {
                "endsWith" => format!("any text that ends with `{text}` passes"),
                "contains" => format!("any text with `{text}` in it passes"),
                _ => format!("any text of which a part matches `{text}` passes"),
            },
        };
        format!("tests only a part of the text of `{target}`, {function}(\"{text}\"): {passes}")
    }

    /// What to write instead.
    pub fn hint(&self) -> String {
        match self.domain() {
            Some(domain) => format!(
                "use all_in_domain(args, \"{domain}\"), which is true only if every address in the call is in that domain"
            ),
            None => {
                format!("compare the whole value, as in {} in [\"one\", \"two\"]", self.target)
            }
        }
    }

    /// The domain, if it tests a mail address.
    fn domain(&self) -> Option<String> {
        let (_, domain) = self.text.rsplit_once('@')?;
        let domain = domain.trim_end_matches('$').replace('\\', "").to_ascii_lowercase();
        super::addresses::is_domain(&domain).then_some(domain)
    }
}

pub(super) fn find(expression: &IdedExpr) -> Vec<RawTextTest> {
    let mut found = Vec::new();
    walk(expression, &["args"], true, &mut found);
    found
}

/// `raw` are the variables with text of the arguments. A test that is negated forbids, and is left out.
fn walk(expression: &IdedExpr, raw: &[&str], is_positive: bool, found: &mut Vec<RawTextTest>) {
    match &expression.expr {
        Expr::Call(call) if call.func_name == operators::LOGICAL_NOT => {
            call.args.iter().for_each(|part| walk(part, raw, !is_positive, found));
        }
        Expr::Call(call) => {
            if let (Some(target), [pattern], true) = (&call.target, call.args.as_slice(), is_positive)
                && is_partial(&call.func_name, literal(pattern))
                && is_raw(target, raw)
            {
                found.push(RawTextTest {
                    target: path(target).unwrap_or_else(|| "args".to_owned()),
                    function: call.func_name.clone(),
                    text: literal(pattern).unwrap_or("…").to_owned(),
                });
            }
            children(expression).into_iter().for_each(|part| walk(part, raw, is_positive, found));
        }
        Expr::Comprehension(each) => {
            let mut inner: Vec<&str> = raw.to_vec();
            // A name of an outer variable may be bound again.
            inner.retain(|name| *name != each.iter_var);
            if is_raw(&each.iter_range, raw) {
                inner.push(&each.iter_var);
                inner.extend(each.iter_var2.as_deref());
            }
            walk(&each.iter_range, raw, is_positive, found);
            for part in [&each.accu_init, &each.loop_step, &each.result] {
                walk(part, &inner, is_positive, found);
            }
        }
        _ => children(expression).into_iter().for_each(|part| walk(part, raw, is_positive, found)),
    }
}

/// Whether the function tests a part of a text only.
fn is_partial(function: &str, pattern: Option<&str>) -> bool {
    match function {
        "endsWith" | "contains" => true,
        "matches" => pattern.is_none_or(|pattern| {
            let is_anchored = pattern.starts_with('^') && pattern.ends_with('$');
            !is_anchored || pattern.contains(".*") || pattern.contains(".+")
        }),
        _ => false,
    }
}

/// Whether a value is made of text of the arguments.
fn is_raw(expression: &IdedExpr, raw: &[&str]) -> bool {
    match &expression.expr {
        Expr::Ident(name) => raw.contains(&name.as_str()),
        Expr::Call(call) if matches!(call.func_name.as_str(), ADDRESSES | ALL_IN_DOMAIN) => false,
        _ => children(expression).into_iter().any(|part| is_raw(part, raw)),
    }
}

fn path(expression: &IdedExpr) -> Option<String> {
    match &expression.expr {
        Expr::Ident(name) => Some(name.clone()),
        Expr::Select(select) => Some(format!("{}.{}", path(&select.operand)?, select.field)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::Condition;

    fn problems(condition: &str) -> Vec<String> {
        let tests = Condition::new(condition).unwrap().raw_text_tests();
        tests.iter().map(|test| format!("{}; {}", test.problem(), test.hint())).collect()
    }

    #[test]
    fn a_test_of_a_part_of_an_argument_is_found() {
        let mail = "`evil@other.example,carol@example.com` passes; use all_in_domain(args, \"example.com\"), \
                    which is true only if every address in the call is in that domain";
        for (condition, expected) in [
            (
                r#"args.to.endsWith("@example.com")"#,
                format!("tests only a part of the text of `args.to`, endsWith(\"@example.com\"): {mail}"),
            ),
            (
                r#"has(args.cc) && args.cc.all(one, one.endsWith("@example.com"))"#,
                format!("tests only a part of the text of `one`, endsWith(\"@example.com\"): {mail}"),
            ),
            (
                r#"args["to"].contains("@example.com") || tool == "x""#,
                format!("tests only a part of the text of `args`, contains(\"@example.com\"): {mail}"),
            ),
            (
                r#"args.to.matches("^.*@example\\.com$")"#,
                format!(
                    "tests only a part of the text of `args.to`, matches(\"^.*@example\\.com$\"): {mail}"
                ),
            ),
            (
                r#"args.path.endsWith(".md")"#,
                "tests only a part of the text of `args.path`, endsWith(\".md\"): any text that ends with \
                 `.md` passes; compare the whole value, as in args.path in [\"one\", \"two\"]"
                    .to_owned(),
            ),
        ] {
            assert_eq!(problems(condition), [expected], "{condition}");
        }
        assert_eq!(problems(r#"args.to.contains(args.x) && args.y.matches("a")"#).len(), 2);
    }

    #[test]
    fn other_tests_are_not() {
        for condition in [
            r#"all_in_domain(args, "example.com")"#,
            r#"addresses(args).all(one, one.endsWith("@example.com"))"#,
            r#"args.to == "bob@example.com" || args.to in ["a", "b"]"#,
            r#"!args.path.contains("..")"#,
            r#"args.to.matches("^[a-z]+$")"#,
            r#"user.endsWith("@example.com") && tool.contains("x")"#,
            r#"args.list.exists(args, args == "x") && ["x"].exists(args, args.endsWith("y"))"#,
        ] {
            assert_eq!(problems(condition), Vec::<String>::new(), "{condition}");
        }
    }
}
