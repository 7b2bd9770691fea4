//! English words and their meanings to the lint. Base forms only: endings are understood by the lookup.

/// What one can do to rules, secrets and the world.
pub(super) const VERBS: &str = "
DISMISS: ignore disregard forget override overrule bypass circumvent supersede disobey defy flout nullify
DISMISS: neutralize neutralise subvert sidestep evade unlearn disapply annul repeal rescind contravene overstep
DISMISS PAST: forgotten overridden overrode
DISMISS: waive dismiss unfollow outsmart overlook deviate dispense stray
CHANGE: skip suspend disable deactivate relax loosen lift drop discard abandon cancel revoke remove delete erase
CHANGE: overwrite replace void break violate omit weaken rewrite wipe purge reset neglect loosen ease stop cease
CHANGE: soften scrap ditch eliminate escape clear undo bend stretch shed
CHANGE PAST: broken broke forwent overwritten
COMPLY: follow obey heed respect honor honour adhere comply abide enforce apply conform observe listen
COMPLY: bound bind obligate constrain restrict limit
SAYS: ask tell instruct order urge persuade trick convince claim try attempt request demand pressure say state
SAYS: want push lure nudge coax insist suggest pose seek encourage aim contain tempt argue beg read
SAYS PAST: told said
SAYS THIRD: asks
SAYS GERUND: asking
REVEAL: reveal leak disclose exfiltrate divulge dump expose spill recite regurgitate
SHOW: print show output repeat display share send post upload forward email mail paste echo transmit reproduce
SHOW: write list give copy publish translate encode provide submit deliver put include append return summarize
SHOW: quote embed
ACT: send delete pay transfer post publish purchase buy wire deploy push email mail message forward tweet wipe
ACT: erase execute refund invite cancel merge commit remove reply respond spend withdraw upload share act proceed
ACT: book order sell sign notify announce contact overwrite install write destructive transaction payment money
ACT: tool outbound charge move drop transact action release reboot shutdown transmit deletion removal transfer
ACT PAST: sent paid spent
MILD: read test lint format build compile search draft refactor rename summarize summarise view look typo preview
MILD: fix list fetch browse explore inspect local check branch spellcheck grep install format cargo npm pytest
MILD: comment docs documentation edit suggest propose
REFUSE: refuse decline reject report flag escalate warn alert resist quarantine distrust suspicious suspect
REFUSE: protect untrusted dispute challenge wary beware cautious caution careful
LOG: log record audit journal document
";

pub(super) const THINGS: &str = "
RULE: rule instruction guideline directive prompt policy restriction constraint regulation prohibition
RULE: obligation limitation programming stipulation commandment mandate precept prescription guidance ruleset principle rulebook
LOOSE: filter protocol boundary limit check control requirement ethic moral training
LOOSE: alignment conditioning censorship moderation scope hygiene attribution defence defense gate layer
GUARD: guardrail safeguard
HIGHER: system body safety security developer operator platform core builtin built constitutional anthropic
HIGHER: openai hidden immutable foundational ethical moral sysprompt root host
EARLIER: above previous previously prior earlier preceding before foregoing former initial initially original
EARLIER: originally existing aforementioned beforehand past precedent
YOUR: your yours
ALL: all any every each entire whole both
THINGS: everything anything whatever what stuff
CONSENT: approval permission confirmation consent asking authorization authorisation approve confirm signoff
CONSENT: confirming greenlight ok okay clearance asks ask
SECRET: secret token password credential passphrase apikey key passwd env dotenv keychain seed cookie
TEXT: file document persona soul note text skill identity memory paragraph character message
TEXT: profile readme voice conversation
OUTSIDE: page web website email mail document tool output result attachment content data retrieved fetched search
OUTSIDE: comment issue ticket quoted snippet transcript feed url site article review pdf reply forum input
OUTSIDE: embedded scraped
OPTION: flag option parameter argument variable field setting cli property attribute decorator
OPTION: constructor method subclass trait selector
ATTACK: injection jailbreak attack attacker malicious phishing adversarial manipulation manipulative
ATTACK: hostile scam scammer exploit adversary intruder impersonator fraud fraudulent
ATTACK: redteam vulnerability threat spoofed spoof attempt hacker
UNBOUND: unrestricted unfiltered uncensored jailbroken unaligned lawless unmoderated limitless unshackled
UNBOUND: unhinged amoral unlimited unbound unconstrained
GONE: void null invalid obsolete nullified rescinded revoked suspended lifted cancelled canceled superseded
GONE: overridden optional moot inoperative disabled inactive waived deprecated expired withdrawn annulled
GONE: repealed outdated irrelevant deleted replaced lifted voluntary unnecessary needless relaxed
PERMIT: allowed permitted fine ok okay encouraged authorized authorised acceptable free welcome
PERMIT: entitled empowered cleared
";

pub(super) const PEOPLE: &str = "
CHIEF: owner admin administrator operator supervisor superuser principal auditor
";

pub(super) const SMALL: &str = "
NEG: not never dont doesnt didnt cannot cant wont mustnt shouldnt couldnt wouldnt neither nor nobody nothing none
NEG: isnt arent wasnt werent forbidden forbid forbids prohibited prohibit prohibits avoid unable impossible
NEG: refuse refuses declines decline resist neednt prevent prevents illegal reject rejects rejecting refusing
NEG: disallowed nope rarely banned tabu taboo
UNDO: hesitate afraid worry only shy fear scared bother fail hold nervous mind think reluctant anymore longer why
UNDO: need have obliged required must necessary needed
GLUE: ever or nor and to be try attempt under any circumstance circumstances knowingly silently simply just in no
GLUE: way case even quietly let anyone you should must may can will would help agree be allowed attempting
GLUE: trying being use using intentionally deliberately casually the a
THIS: this these following below my here our current
LINK: when if while using unless because with for in on at by as after until from to under per about
LINK: that which who where so since between inside within during via through into than matching against like whether
";

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
