//! Word to meaning, as a set of bits. Owns lookup, English inflection and the tables: English base forms, and stems in
//! other languages, folded.
//! A table line is `KINDS: words`; a word that ends in `*` stands for everything that begins with it.

use std::collections::HashMap;
use std::ops::BitOr;
use std::sync::OnceLock;

const MAX_STEM_CHARS: usize = 16;
const MIN_STEM_CHARS: usize = 3;

/// What `word` (already folded) means; empty for most words.
pub(super) fn kinds_of(word: &str) -> Kinds {
    let lexicon = lexicon();
    let exact = lexicon.words.get(word).copied().unwrap_or_default();
    let known = if exact.is_empty() { lexicon.inflected(word) } else { exact };
    if known.is_empty() { lexicon.by_stem(word) } else { known }
}

/// Whether `word` is one of the plain words of the tables.
pub(super) fn knows(word: &str) -> bool {
    let lexicon = lexicon();
    lexicon.words.contains_key(word) || !lexicon.inflected(word).is_empty()
}

struct Lexicon {
    words: HashMap<&'static str, Kinds>,
    stems: HashMap<&'static str, Kinds>,
}

fn lexicon() -> &'static Lexicon {
    static LEXICON: OnceLock<Lexicon> = OnceLock::new();
    LEXICON.get_or_init(|| {
        let mut lexicon = Lexicon { words: HashMap::new(), stems: HashMap::new() };
        for table in [VERBS, THINGS, PEOPLE, SMALL, TRADES] {
            lexicon.add(table, Kinds::none());
        }
        for table in [GERMANIC, ROMANCE, OTHERS] {
            lexicon.add(table, Kinds::FOREIGN);
        }
        lexicon
    })
}

impl Lexicon {
    fn add(&mut self, table: &'static str, always: Kinds) {
        for line in table.lines() {
            let Some((names, words)) = line.split_once(':') else { continue };
            let kinds =
                names.split_whitespace().filter_map(Kinds::named).fold(always, |all, kind| all | kind);
            for word in words.split_whitespace() {
                let entry = match word.strip_suffix('*') {
                    Some(stem) => self.stems.entry(stem),
                    None => self.words.entry(word),
                };
                let known = entry.or_default();
                // An English word keeps its English meaning when another language spells a word the same way.
                *known = if known.is_empty() { kinds } else { *known | kinds.without(Kinds::FOREIGN) };
            }
        }
    }

    fn by_stem(&self, word: &str) -> Kinds {
        let ends = word.char_indices().map(|(at, c)| at + c.len_utf8()).take(MAX_STEM_CHARS);
        ends.skip(MIN_STEM_CHARS - 1)
            .filter_map(|end| self.stems.get(word.get(..end)?))
            .fold(Kinds::none(), |all, &kinds| all | kinds)
    }

    /// English endings: `-s`, `-ed`, `-ing`, with the spelling changes that go with them.
    fn inflected(&self, word: &str) -> Kinds {
        if !word.is_ascii() || word.len() < 4 {
            return Kinds::none();
        }
        let endings = [("ies", "y", Kinds::THIRD), ("s", "", Kinds::THIRD), ("es", "", Kinds::THIRD)];
        let past = [("ied", "y", Kinds::PAST), ("d", "", Kinds::PAST), ("ed", "", Kinds::PAST)];
        let gerund = [("ing", "e", Kinds::GERUND), ("ing", "", Kinds::GERUND)];
        for (ending, restored, form) in endings.into_iter().chain(past).chain(gerund) {
            let Some(stem) = word.strip_suffix(ending) else { continue };
            let base = format!("{stem}{restored}");
            let undoubled = if form == Kinds::THIRD { "" } else { undouble(stem) };
            let found = self.words.get(base.as_str()).or_else(|| self.words.get(undoubled));
            if let Some(&kinds) = found.filter(|kinds| !kinds.has(Kinds::FOREIGN)) {
                return kinds | form;
            }
        }
        Kinds::none()
    }
}

/// `skipp` to `skip`; nothing when the last letter is not doubled.
fn undouble(stem: &str) -> &str {
    let mut back = stem.chars().rev();
    match (back.next(), back.next()) {
        (Some(last), Some(before)) if last == before => {
            stem.get(..stem.len() - last.len_utf8()).unwrap_or_default()
        }
        _ => "",
    }
}

/// What one can do to rules, secrets and the world.
const VERBS: &str = "
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

const THINGS: &str = "
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

const PEOPLE: &str = "
CHIEF: owner admin administrator operator supervisor superuser principal auditor
";

const SMALL: &str = "
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
const TRADES: &str = "
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

const GERMANIC: &str = "
DISMISS: ignorier* missacht* umgeh* ubergeh* vergiss vergesst vergessen hinwegsetz* widersetz* aushebel* ausserkraft
DISMISS: negeer* negeren vergeet omzeil* overtreed* schend* uberschreib* hinweg
COMPLY: befolg* folge folgen folgst halte halten beachten gehorch* einhalt* beachte gelten gilt respektier*
COMPLY: volg volgen opvolg* houd gehoorza* naleven respecteer* gelden geldt
NEG: nicht niemals nie keinesfalls kein keine keinen keiner verweiger* nooit niet geen weiger* nimmer lehne ablehn*
RULE: anweisung* regel regeln regels vorgab* richtlini* vorschrift* instruktion* sicherheitsregel* systemanweisung*
RULE: beschrankung* einschrankung* instructie* richtlijn* voorschrift* beperking* systemprompt* systeemprompt*
RULE: systemregel* systeeminstructie* opdrachten
EARLIER: vorherig* bisherig* oben obige* obig fruhere* vorangehend* vorangegangen* voranstehend* vorstehend* zuvor
EARLIER: vorige eerdere voorgaande bovenstaande hierboven hiervoor
HIGHER: systeem* sicherheits* veiligheids* system*
YOUR: deine deinen deiner dein ihre ihren euren jouw uw
ALL: alle allen samtliche alles
CONSENT: erlaubnis genehmigung freigabe zustimmung bestatigung ruckfrage nachfrage nachzufragen fragen einwilligung
CONSENT: toestemming goedkeuring bevestiging vragen akkoord rucksprache
ACT: sende senden schick* losch* bezahl* uberweis* verschick* versend* veroffentlich* ausfuhr* stuur* verstuur*
NEED: brauch* benotig* notig erforderlich nodig hoef* hoeft
ASK: frag frage fragt vraag
ACT: zahlung* auszufuhren
ACT: verwijder* betaal* verzend* fuhre handeln handel aktion* plaats*
";

const ROMANCE: &str = "
DISMISS: ignorez ignorer ignores oublie oubliez oublier contourne* desactive* outrepass* negligez passez transgress*
DISMISS: ignora ignorad ignorar ignoren olvida olvidad olvide olvidar olvidate omite omitir desobedec* salta saltar* saltate
DISMISS: desconsidera desconsidere desconsiderar dimentica dimenticate dimenticare ignorare ignorate trascura* aggira*
DISMISS: disattiva* esquece esqueca esquecer ignorem contornar contorne burla desactiva anula scavalca* pasa
DISMISS: prescinde descarta omiso
COMPLY: suis suivez suivre respecte respectez respecter obeis sigas siga sigan seguir obedezcas obedezca respetes respetar
COMPLY: seguire segui seguite rispettare rispetta obbedire obedeca obedecer respeite cumpla cumplas aplican applicano
COMPLY: soumis* valgono valent valen valem appliquent aplicam tenere tiens tenez tenir compte caso
NEG: pas jamais ne n aucun aucune non mai nunca jamas nao nem refuse refusez rechaza rifiuta recuse tampoco nessun ningun
RULE: consigne* regle regles directiv* instruccion* regla reglas norma normas directric* restriccion* instruction* restriction*
RULE: istruzion* regola regole direttiv* restrizion* instruc* regra regras diretriz* restric* indicacion* indicazion*
RULE: linee orientac* prompt
EARLIER: precedent* anterieur* anterior* dessus previ* antes arriba precedenti sopra acima superior* avant previa previas
EARLIER: auparavant
HIGHER: systeme sistema securite seguridad sicurezza seguranca
YOUR: tes vos tus tue tuas suas vostre vuestras ton
ALL: toutes tous tout todas todos todo tutte tutti tutto qualquer cualquier
CONSENT: demander autorisation permission confirmation approbation accord preguntar permiso aprobacion confirmacion
CONSENT: autorizacion chiedere permesso approvazione conferma autorizzazione perguntar permissao aprovacao confirmacao
CONSENT: autorizacao pedir consentimiento consenso consentimento consentement
ACT: envoie* envoyez envoyer supprim* paie payez executez executer envia* borra* paga* elimina* invia* cancella* apaga* exclua
NEED: besoin necesit* requier* serve servono bisogno precis* necessari* faut hace
ASK: demande demandez pidas pidais preguntes chiedere chiedi peca pergunte
ACT: apague paiement* pagos pagamenti pagamentos enviar inviare
ACT: esegu* transfier* publie* publiez publica pubblica* virement agis actua agisci aja deplace* efface* manda mandar mande
";

const OTHERS: &str = "
DISMISS: игнориру* проигнориру* забудь забудьте забыть обоиди* обоити отмени* наруша* нарушь* пренебре* отбрось* ігноруи*
DISMISS: zignoruj* ignoruj* zapomnij* pomin pomijaj obejdz zlekcewaz* zapomen* obejdi
DISMISS: unut unutun unutunuz yoksay yoksayin gormezden dikkate atla abaikan lupakan
DISMISS: تجاهل تجاهلي تجاهلوا وتجاهل انس انسي انسوا تخط تجاوز اتجاهل نادیده
COMPLY: обраща* zwracaj следуи* соблюдаи* подчиняи* выполняи* деиству* przestrzega* stosuj* sluchaj* uyma uymayin uymak uyman uymana
COMPLY: تتبع تلتزم تطع
NEG: не никогда нельзя ни nie nigdy ne nikdy nikdo asla degil hicbir لا لن ابدا откажи* отказы* отклон* odmow* jangan
NEG: reddet* ارفض يجب_الا
RULE: инструкц* правил* указани* ограничени* директив* установк* інструкці* instrukcj* instrukc* zasad* reguly regulamin* polecen*
RULE: wytyczn* ograniczen* pokyn* pravidl* talimat* kural* kisitlama* yonerge* instruksi aturan
RULE: التعليمات تعليمات القواعد قواعد الارشادات القيود تعليماتك قواعدك الاوامر دستورات
EARLIER: предыдущ* прежн* выше* ранее предшеству* попередн* poprzedni* wczesniejsz* powyzsz* predchoz* onceki yukaridaki
EARLIER: sebelumnya daha السابقه السابق اعلاه المذكوره سابقا قبلی
HIGHER: систем* безопасност* systemow* bezpieczenstw* sistem* guvenlik* النظام الامان
YOUR: твои* свои* ваши* твоих своих twoje swoje swoich twoich senin تعليماتك
ALL: все всех всякие любые wszystkie wszystkich wszelkie wszystko tum butun semua جميع كل كافه vsechny
CONSENT: разрешения разрешение подтверждения подтверждение согласия согласие одобрения спроса спрашивая
CONSENT: zgody pozwolenia potwierdzenia pytania zatwierdzenia onay onayi izin onaysiz izinsiz sormadan اذن موافقه الموافقه سؤال الاذن
ACT: отправ* удал* плат* перевод* перевед* выполня* wysyl* wysla* wyslij usun usuwaj plac zaplac gonder* sil odeme
NEED: нуж* треб* потребу* potrzeb* wymag* gerek* تحتاج يلزم
ASK: спрашива* pytaj sorma
ACT: платеж* platnosc* przelew*
ACT: ارسل ارسال احذف حذف ادفع деиству* публику* dzialaj yayinla
";

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Kinds(u64);

impl Kinds {
    pub(super) const fn none() -> Self {
        Self(0)
    }

    pub(super) const fn has(self, any_of: Self) -> bool {
        self.0 & any_of.0 != 0
    }

    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }

    pub(super) const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    /// The set that a table or pattern calls `name`.
    pub(super) fn named(name: &str) -> Option<Self> {
        NAMES.iter().find(|(known, _)| *known == name).map(|(_, kinds)| *kinds)
    }
}

impl BitOr for Kinds {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        self.with(other)
    }
}

macro_rules! kinds {
    ($($(#[$why:meta])* $name:ident = $bit:literal;)*) => {
        impl Kinds {
            $($(#[$why])* pub(super) const $name: Self = Self(1 << $bit);)*
        }
        const NAMES: &[(&str, Kinds)] = &[$((stringify!($name), Kinds::$name)),*];
    };
}

kinds! {
    /// To set aside: ignore, disregard, bypass.
    DISMISS = 0;
    /// To set aside or to edit, depending on what: skip, replace, remove.
    CHANGE = 1;
    /// To keep to: follow, obey.
    COMPLY = 2;
    /// Turns what follows into its opposite: never, refuse.
    NEG = 3;
    /// Turns a negation back: hesitate, afraid, only.
    UNDO = 4;
    /// Rules as such: instructions, guidelines.
    RULE = 5;
    /// Rules only in context: orders, commands, filters.
    LOOSE = 6;
    /// Protections: guardrails, safeguards.
    GUARD = 7;
    /// Belongs to a higher layer: system, body, safety.
    HIGHER = 8;
    /// Stands before this text: above, previous.
    EARLIER = 9;
    /// The agent's own.
    YOUR = 10;
    /// Without exception: all, any.
    ALL = 11;
    /// Things at large: everything, whatever.
    THINGS = 12;
    /// Consent: approval, asking.
    CONSENT = 13;
    /// Acts on the world: send, delete, pay.
    ACT = 14;
    /// Acts on nothing that matters: read, format, test.
    MILD = 15;
    /// Speaks of attacks.
    ATTACK = 16;
    /// Turns something down.
    REFUSE = 17;
    /// Says what somebody wants: asks, tells, tries.
    SAYS = 18;
    /// People who may decide: owner, administrator.
    CHIEF = 19;
    /// Credentials.
    SECRET = 20;
    /// Makes public: reveal, leak.
    REVEAL = 21;
    /// Moves or shows: send, print.
    SHOW = 22;
    /// Text like this one: file, persona, note.
    TEXT = 23;
    /// Sources that are data: pages, e-mails, tool output.
    OUTSIDE = 24;
    /// Trades that have rules of their own: CSS, tax, chess.
    TRADE = 25;
    /// Settings and flags.
    OPTION = 26;
    /// A word of a language with free word order.
    FOREIGN = 27;
    /// Ends in -s.
    THIRD = 28;
    /// Ends in -ed or is irregular.
    PAST = 29;
    /// Ends in -ing.
    GERUND = 30;
    /// Gives leave: allowed, fine.
    PERMIT = 31;
    /// Writes a record: log, audit.
    LOG = 32;
    /// Without bounds: unrestricted, jailbroken.
    UNBOUND = 33;
    /// No longer in force: void, cancelled.
    GONE = 34;
    /// Between a negation and its verb without meaning of its own.
    GLUE = 35;
    /// Pointing words: this, these.
    THIS = 36;
    /// Introduces an object or circumstance: when, in, for.
    LINK = 37;
    /// A phrase ends here that names rules of a higher layer: "the system prompt", "your rules".
    TOPIC = 40;
    /// Says that something is needed.
    NEED = 38;
    /// Asks for leave, in languages other than English.
    ASK = 39;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_lead_back_to_the_word() {
        for (word, form) in [("skips", Kinds::THIRD), ("skipped", Kinds::PAST), ("skipping", Kinds::GERUND)] {
            assert!(kinds_of(word).has(Kinds::CHANGE) && kinds_of(word).has(form), "{word}");
        }
        assert!(kinds_of("policies").has(Kinds::RULE));
        assert!(kinds_of("ignoring").has(Kinds::DISMISS));
        assert!(!kinds_of("notes").has(Kinds::NEG));
    }

    #[test]
    fn tables_name_only_known_meanings() {
        let english = [VERBS, THINGS, PEOPLE, SMALL, TRADES];
        let others = [GERMANIC, ROMANCE, OTHERS];
        for line in english.into_iter().chain(others).flat_map(str::lines).filter(|line| !line.is_empty()) {
            let (names, _) = line.split_once(':').unwrap();
            assert!(names.split_whitespace().all(|name| Kinds::named(name).is_some()), "{line}");
        }
    }

    #[test]
    fn an_english_word_keeps_its_meaning_among_foreign_stems() {
        assert!(!kinds_of("instructions").has(Kinds::FOREIGN));
        assert!(kinds_of("instructies").has(Kinds::FOREIGN));
    }
}
