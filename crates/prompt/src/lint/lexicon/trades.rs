//! Trades and tools that have rules of their own, so that "the CSS rules above" is not about the agent.

/// Words that, beside a rule, say whose rule it is.
pub(super) const TRADES: &str = "
TRADE: lint linter linting eslint clippy css stylelint style styling formatting firewall routing iptables proxy nginx
TRADE: build make makefile prettier game chess grammar validation parser sql tax dress parking recipe cooking assembly
TRADE: setup install installation washing care driving migration deploy deployment alert alerting retention cors
TRADE: cache backup lifecycle gitignore dockerfile docker sass scss tailwind webpack babel pylint flake8 ruff mypy
TRADE: rubocop shellcheck semgrep sonar udev selinux snort suricata yara rewrite redirect htaccess robots crawler
TRADE: business pricing discount shipping house school league naming spacing indentation whitespace punctuation
TRADE: spelling knitting sewing brewing baking planting gardening watering feeding dosage medication board
TRADE: tournament inference rewriting typing compiler mapping sorting sort match matching branch protection commit
TRADE: scheduling calendar inbox mail spam autocorrect keyboard terraform ansible kubernetes network ingress egress
TRADE: sampling scoring scorecard billing refund vacation travel expense leave insurance privacy cookie furniture
TRADE: forwarding manufacturer laundry exercise workout physiotherapy doctor doctors pharmacy packing mounting
";
