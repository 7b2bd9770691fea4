//! The same meanings in languages other than English, folded (no accents), mostly as stems.

pub(super) const GERMANIC: &str = "
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

pub(super) const ROMANCE: &str = "
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

pub(super) const OTHERS: &str = "
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
