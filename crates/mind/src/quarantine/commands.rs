//! Orders in English, and their commonest forms in other languages: the act that the reader must do, the addressee, and
//! whether the act matters. Ignores restrictions, acts of other people, and wishes of the speaker.

use super::address::{self, Address};
use super::clause::{Gap, Sentence, is_address};
use super::harm::Harm;
use super::{ALL, ANY_ACT, DECEIVE, DESTROY, EXECUTE, GRANT, POWER, REVEAL, SPEND, TRANSMIT};

pub(super) fn commands_in_english(sentences: &[Sentence]) -> bool {
    let mut addressed = Address::None;
    let mut reading = false;
    for sentence in sentences {
        let (address, from) = address::address(sentence);
        let view = SentenceAnalysis::new(sentence, address.max(addressed), from, reading);
        if view.is_command() {
            return true;
        }
        let only_calls = from >= sentence.words.len() && address == Address::Call;
        addressed = if only_calls { Address::Call } else { Address::None };
        reading = view.reading && view.told.is_empty();
    }
    false
}

struct SentenceAnalysis<'a> {
    sentence: &'a Sentence,
    harm: Harm<'a>,
    address: Address,
    standing: bool,
    reading: bool,
    /// Places of the acts that the reader is told to do.
    told: Vec<usize>,
    /// Places of the acts that are the reader's duty.
    duty: Vec<usize>,
}

impl<'a> SentenceAnalysis<'a> {
    fn new(sentence: &'a Sentence, address: Address, from: usize, reading: bool) -> Self {
        let imperatives = address::imperatives(sentence);
        let is_told = |at: &usize| imperatives.contains(at) || is_free_do(sentence, *at);
        let acts = sentence.all(ANY_ACT).filter(|at| *at >= from && is_meant(sentence, *at));
        let told: Vec<usize> = acts.filter(is_told).collect();
        let duty = address::your_duty(sentence).map_or(Vec::new(), |start| acts_of_duty(sentence, start));
        let standing = address::is_standing(sentence);
        Self {
            sentence,
            harm: Harm { sentence, standing },
            address,
            standing,
            reading: reading || address::on_reading(sentence),
            told,
            duty,
        }
    }

    fn is_command(&self) -> bool {
        let (sentence, harm) = (self.sentence, &self.harm);
        let ordered =
            address::your_orders(sentence).is_some_and(|start| !acts_of_duty(sentence, start).is_empty());
        let swept = |at: usize| sentence.has_from(at + 1, ALL);
        let granted = |at: usize| sentence.is(at, GRANT) && sentence.has_from(at + 1, POWER) && swept(at);
        let bared = |at: usize| {
            sentence.is(at, "reveal disclose divulge expose leak") && harm.exposes(at) && swept(at)
        };
        self.is_spoken_to()
            || ordered
            || self.is_agents_duty()
            || self.reading && self.acts().any(|at| acts_on_world(sentence, at))
            || self.standing && self.acts().any(|at| harm.matters(at) && !harm.is_for_speaker(at))
            || self.duty.iter().any(|at| harm.matters(*at) && (harm.names_address() || harm.exposes(*at)))
            || self.acts().any(|at| {
                harm.obeys(at) || harm.hands_over(at) || harm.deceives(at) || granted(at) || bared(at)
            })
            || self.acts().any(|at| acts_on_world(sentence, at))
                && (harm.keeps_quiet() || harm.in_your_answer())
            || self.acts().any(|at| harm.approves_all(at) || harm.acts_alone(at) || harm.puts_words(at))
            || self.acts().any(|at| harm.takes_place_of_owner(at))
            || self.acts().any(|at| harm.changes_itself(at))
            || harm.gives_purpose()
            || harm.waives()
            || harm.is_done_by_you()
            || harm.is_seen_to()
            || harm.hushes()
            || harm.marks_your_answers()
    }

    fn acts(&self) -> impl Iterator<Item = usize> + '_ {
        self.told.iter().chain(&self.duty).copied()
    }

    /// The agent by name, and something that it is told to do.
    fn is_spoken_to(&self) -> bool {
        match self.address {
            Address::None => false,
            Address::Call => self.acts().next().is_some(),
            Address::Label => self.acts().any(|at| {
                let harm = &self.harm;
                self.standing
                    || harm.names_address()
                    || harm.exposes(at)
                    || harm.hands_over(at)
                    || harm.changes_itself(at)
                    || self.sentence.is(at, "disregard ignore override")
            }),
        }
    }

    /// "The assistant must …": a contract with an estate agent says so too, so it has to be without exception or go far.
    fn is_agents_duty(&self) -> bool {
        let acts = address::duty_of_agent(self.sentence)
            .map_or(Vec::new(), |start| acts_of_duty(self.sentence, start));
        let harm = &self.harm;
        let swept = self.sentence.has_from(0, ALL);
        acts.into_iter().any(|at| {
            self.standing
                || harm.names_address()
                || harm.matters(at) && swept
                || self.sentence.is(at, DECEIVE)
        })
    }
}

/// Some verbs are orders only with what follows them.
fn is_meant(sentence: &Sentence, at: usize) -> bool {
    let next = |list: &str| sentence.is(at + 1, list);
    match sentence.word(at) {
        "do" => next("whatever what everything anything exactly as"),
        "turn" => next("off"),
        "keep" => next("sending forwarding sharing posting copying"),
        "let" => next("anyone everyone anybody"),
        "stop" => {
            next("asking telling informing reporting logging checking waiting following obeying refusing")
        }
        "start" | "begin" => next("acting sending forwarding obeying following using sharing"),
        _ => true,
    }
}

/// "In case of doubt do what he says": a `do` for which nobody is named.
fn is_free_do(sentence: &Sentence, at: usize) -> bool {
    const SUBJECTS: &str =
        "i we they he she it to you people who can could would will not don't doesn't didn't should must";
    sentence.is(at, "do") && at.checked_sub(1).is_none_or(|before| !sentence.is(before, SUBJECTS))
}

/// The acts that a duty is about: the first verb after it, if it comes soon, and what is joined to it.
fn acts_of_duty(sentence: &Sentence, start: usize) -> Vec<usize> {
    let soon = (start..start + 6).find(|at| sentence.is(*at, ANY_ACT));
    let Some(first) = soon.filter(|at| !(start..*at).any(|near| sentence.is(near, "not never ask"))) else {
        return Vec::new();
    };
    let joined = sentence.all(ANY_ACT).filter(|at| *at > first && sentence.is(at - 1, "and or then"));
    std::iter::once(first).chain(joined).collect()
}

fn acts_on_world(sentence: &Sentence, at: usize) -> bool {
    [TRANSMIT, EXECUTE, DESTROY, SPEND, REVEAL, DECEIVE].iter().any(|list| sentence.is(at, list))
        || sentence.is(at, "grant call update change obey book read include append approve say turn keep add cancel unsubscribe")
}

/// One language: its phrases separated by `|`, its words by blanks.
struct Language {
    standing: &'static str,
    reading: &'static str,
    /// What is told, as it stands at the beginning of a clause.
    acts: &'static str,
    duty: &'static str,
    acts_due: &'static str,
    all: &'static str,
    /// Right after the act: somebody else does it.
    subjects: &'static str,
    /// Right before it: it is told all the same.
    fillers: &'static str,
}

struct Unspaced {
    when: &'static str,
    acts: &'static str,
    all: &'static str,
    subjects: &'static str,
}

const LANGUAGES: &[Language] = &[
    Language {
        standing: "ab jetzt|ab sofort|von nun an|von jetzt an|ab heute|künftig|in zukunft|immer wenn|jedes mal wenn|\
             jedes mal",
        reading: "wenn du das liest|wenn du dies liest|sobald du das liest|sobald du dies liest|wenn sie das lesen",
        acts: "leite sende schicke schick überweise lösche gehorche teile veröffentliche führe bezahle zahle befolge \
             verrate antworte leiten senden schicken überweisen löschen",
        duty: "musst sollst müssen",
        acts_due: "gehorchen weiterleiten senden schicken überweisen löschen befolgen verraten bezahlen",
        all: "jede jeden jedem jedes alle allen alles sämtliche passwort passwörter kopie",
        subjects: "ich wir er sie es man",
        fillers: "bitte und dann sondern sofort immer assistent",
    },
    Language {
        standing: "à partir de maintenant|dorénavant|désormais|à chaque fois que|chaque fois que",
        reading: "quand tu lis ceci|quand vous lisez ceci|lorsque tu lis ceci|lorsque vous lisez ceci|dès que tu lis ceci",
        acts: "transfère transférez envoie envoyez supprime supprimez obéis obéissez partage partagez paie payez exécute \
             exécutez publie publiez révèle révélez",
        duty: "dois devez",
        acts_due: "transférer envoyer supprimer obéir partager payer exécuter publier révéler",
        all: "tout tous toute toutes chaque",
        subjects: "je nous on elle il",
        fillers: "et puis immédiatement toujours",
    },
    Language {
        standing: "a partir de ahora|desde ahora|de ahora en adelante|siempre que|cada vez que",
        reading: "cuando leas esto|cuando lea esto|al leer esto|si lees esto",
        acts: "reenvía reenvíe envía envíe manda mande borra borre obedece obedezca comparte comparta transfiere \
             transfiera paga pague ejecuta ejecute publica publique revela revele",
        duty: "debes debe tienes",
        acts_due: "reenviar enviar mandar borrar obedecer compartir transferir pagar ejecutar publicar revelar",
        all: "todo todos toda todas cada copia",
        subjects: "yo ella él",
        fillers: "y luego siempre",
    },
    Language {
        standing: "d'ora in poi|da ora in poi|da adesso in poi|ogni volta che",
        reading: "quando leggi questo|appena leggi questo|se leggi questo",
        acts: "inoltra inoltrate invia inviate manda mandate cancella obbedisci condividi trasferisci paga esegui \
             pubblica rivela",
        duty: "devi dovete",
        acts_due: "inoltrare inviare mandare cancellare obbedire condividere trasferire pagare eseguire pubblicare",
        all: "tutto tutti tutta tutte ogni copia",
        subjects: "io lei lui",
        fillers: "e poi sempre",
    },
    Language {
        standing: "a partir de agora|de agora em diante|sempre que|cada vez que",
        reading: "quando ler isto|quando você ler isto|ao ler isto|se ler isto",
        acts: "encaminhe encaminha envie envia mande manda apague apaga obedeça obedece compartilhe compartilha \
             transfira pague execute publique revele",
        duty: "deve deves",
        acts_due: "encaminhar enviar mandar apagar obedecer compartilhar transferir pagar executar publicar revelar",
        all: "tudo todo todos toda todas cada",
        subjects: "eu ela ele",
        fillers: "e depois sempre",
    },
    Language {
        standing: "с этого момента|отныне|впредь|с сегодняшнего дня|каждый раз|каждый раз когда",
        reading: "когда прочитаешь это|когда прочтёшь это|прочитав это",
        acts: "пересылай пересылайте отправляй отправляйте отправь удаляй удали подчиняйся выполняй плати переводи публикуй",
        duty: "должен должна обязан",
        acts_due: "пересылать отправлять удалять подчиняться выполнять платить переводить",
        all: "все всё всех каждое каждый каждую",
        subjects: "я мы он она",
        fillers: "и потом всегда",
    },
];

const UNSPACED: &[Unspaced] = &[
    Unspaced {
        when: "从现在起|从现在开始|从今以后|今后|每次|读到这|看到这|讀到這|看到這|從現在起",
        acts: "转发|轉發|发送|發送|发给|發給|删除|刪除|服从|执行|转账|支付",
        all: "所有|全部|每|任何|密码",
        subjects: "我|他|她",
    },
    Unspaced {
        when: "これからは|今後|これを読んだら|毎回",
        acts: "転送|送信|送って|削除|従って|従い|実行して|支払",
        all: "すべて|全て|全部|毎回|パスワード",
        subjects: "私|彼",
    },
];

/// Whether any sentence tells the reader, in one of these languages, to do something from now on or on reading.
pub(super) fn commands_in_other_languages(sentences: &[Sentence]) -> bool {
    let ordered = "je t'ordonne|je vous ordonne|ich befehle dir|ich befehle ihnen|te ordeno|le ordeno|ti ordino|приказываю";
    sentences.iter().any(|sentence| {
        sentence.after_phrase(ordered).is_some()
            || LANGUAGES.iter().any(|language| language.is_command(sentence))
            || UNSPACED.iter().any(|language| language.is_command(sentence))
    })
}

impl Language {
    fn is_command(&self, sentence: &Sentence) -> bool {
        let reading = sentence.after_phrase(self.reading);
        let Some(end) = sentence.after_phrase(self.standing).or(reading) else { return false };
        let begins =
            |at: usize| at == end || sentence.gap(at) != Gap::Space || sentence.is(at - 1, self.fillers);
        let told = sentence.all(self.acts).any(|at| begins(at) && !sentence.is(at + 1, self.subjects));
        let due = sentence.has_from(0, self.duty) && sentence.has_from(0, self.acts_due);
        let far = sentence.has_from(0, self.all) || sentence.words.iter().any(|word| is_address(&word.text));
        (told || due) && (reading.is_some() || far)
    }
}

impl Unspaced {
    fn is_command(&self, sentence: &Sentence) -> bool {
        let text: String = sentence.words.iter().map(|word| word.text.as_str()).collect();
        let has = |list: &str| list.split('|').any(|word| text.contains(word));
        has(self.when) && has(self.acts) && !has(self.subjects) && (has(self.all) || text.contains('@'))
    }
}
