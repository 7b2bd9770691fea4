//! The stories in the hosts and over the transports that `./test` leaves out. `./test hosts` runs them.

use super::checks::{expires, two_conversations, two_writes_in_one_answer, waits_within_a_call};
use super::program::Program::{self, Claude, Codex, Gemini, Opencode};
use super::scenario::Link::{self, Http, Stdio, StdioWithoutDiscover};

/// One test for each host and transport.
macro_rules! matrix {
    ($story:ident: $($name:ident($program:expr, $link:expr);)*) => {
        mod $story {
            use super::*;

            $(#[test]
            fn $name() {
                let (program, link): (Program, Link) = ($program, $link);
                super::$story(program, link);
            })*
        }
    };
}

matrix! { two_conversations:
    codex_over_http(Codex, Http);
    opencode_over_http(Opencode, Http);
    gemini_cli_over_http(Gemini, Http);
}

matrix! { waits_within_a_call:
    codex_over_stdio(Codex, Stdio);
    opencode_over_stdio(Opencode, Stdio);
    claude_code_over_stdio(Claude, Stdio);
    claude_code_with_the_handshake(Claude, StdioWithoutDiscover);
    claude_code_over_http(Claude, Http);
    gemini_cli_over_stdio(Gemini, Stdio);
}

matrix! { expires:
    codex_over_http(Codex, Http);
    opencode_over_http(Opencode, Http);
    claude_code_over_http(Claude, Http);
    gemini_cli_over_http(Gemini, Http);
}

matrix! { two_writes_in_one_answer:
    codex_over_http(Codex, Http);
    opencode_over_stdio(Opencode, Stdio);
    opencode_over_http(Opencode, Http);
    claude_code_with_the_handshake(Claude, StdioWithoutDiscover);
    claude_code_over_http(Claude, Http);
    gemini_cli_over_stdio(Gemini, Stdio);
    gemini_cli_over_http(Gemini, Http);
}
