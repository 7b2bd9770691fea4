//! Orders in other languages: the commonest ways to say "from now on" and "when you read this", with an act that is told.
//! Owns these few phrases; what relaxes a rule is the lint's.

use super::clause::{Gap, Sentence, is_address};

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
pub(super) fn commands(sentences: &[Sentence]) -> bool {
    let ordered = "je t'ordonne|je vous ordonne|ich befehle dir|ich befehle ihnen|te ordeno|le ordeno|ti ordino|приказываю";
    sentences.iter().any(|sentence| {
        sentence.after_phrase(ordered).is_some()
            || LANGUAGES.iter().any(|language| language.commands(sentence))
            || UNSPACED.iter().any(|language| language.commands(sentence))
    })
}

impl Language {
    fn commands(&self, sentence: &Sentence) -> bool {
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
    fn commands(&self, sentence: &Sentence) -> bool {
        let text: String = sentence.words.iter().map(|word| word.text.as_str()).collect();
        let has = |list: &str| list.split('|').any(|word| text.contains(word));
        has(self.when) && has(self.acts) && !has(self.subjects) && (has(self.all) || text.contains('@'))
    }
}
