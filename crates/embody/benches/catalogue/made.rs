//! Tools as servers have them: those that are written down among the tests of definitions, and beyond those what services
//! do with what they keep, each with a schema of its own.

use serde_json::{Map, Value, json};

const DEFINITIONS: &str = include_str!("../../../text/corpus/definitions.tuning.tsv");

/// What is done, and how its server says so.
pub(super) const VERBS: [(&str, &str); 8] = [
    ("create", "Creates a new"),
    ("get", "Returns one"),
    ("list", "Lists every"),
    ("update", "Updates the fields of a"),
    ("delete", "Deletes a"),
    ("search", "Searches by text for a"),
    ("archive", "Archives a"),
    ("export", "Writes to a CSV file every"),
];

/// Services, and what they keep.
pub(super) const SERVICES: [(&str, [&str; 10]); 62] = services();

/// So many tools; few are a part of more.
pub(super) fn tools(count: usize) -> Vec<Value> {
    let rows = DEFINITIONS.lines().skip(1).map(|line| line.split('\t').collect::<Vec<_>>());
    let honest = rows.filter_map(|row| match row.as_slice() {
        [_, _, "benign", definition, "honest", ..] => {
            Some(serde_json::from_str::<Value>(definition).unwrap())
        }
        _ => None,
    });
    let made = SERVICES.iter().flat_map(|(service, nouns)| {
        nouns.iter().flat_map(move |noun| VERBS.iter().map(move |verb| made(service, noun, *verb)))
    });
    let tools: Vec<Value> = honest.map(with_schema).chain(made).take(count).collect();
    assert_eq!(tools.len(), count, "there are not so many");
    tools
}

pub(super) fn name(service: &str, noun: &str, verb: &str) -> String {
    format!("{service}_{verb}_{}", noun.replace(' ', "_"))
}

fn with_schema(mut tool: Value) -> Value {
    if tool.get("inputSchema").is_none() {
        tool["inputSchema"] = json!({"type": "object", "properties": {}});
    }
    tool
}

fn made(service: &str, noun: &str, (verb, says): (&str, &str)) -> Value {
    let id = format!("{}_id", noun.replace(' ', "_"));
    let mut properties = Map::new();
    let mut put = |name: &str, kind: &str, about: String| {
        properties.insert(name.to_owned(), json!({"type": kind, "description": about}));
    };
    put("account", "string", format!("The {service} account to act for. The default account if left out."));
    match verb {
        "create" | "update" => {
            put("title", "string", format!("The title of the {noun}, at most 200 characters."));
            put("notes", "string", "Free text in Markdown.".to_owned());
            put("labels", "array", "Names of labels to attach.".to_owned());
        }
        "list" | "search" | "export" => {
            put("filter", "string", "A filter such as `status:open owner:me`.".to_owned());
            put("cursor", "string", "Where to go on, from an earlier answer.".to_owned());
            put("page_size", "integer", "How many at a time, 50 unless told otherwise.".to_owned());
        }
        _ => put("reason", "string", "Why, for the record.".to_owned()),
    }
    let takes_id = !matches!(verb, "create" | "list" | "search" | "export");
    if takes_id {
        put(&id, "string", format!("Which {noun}."));
    }
    let required: Vec<&str> = takes_id.then_some(&*id).into_iter().collect();
    let hints = json!({"readOnlyHint": matches!(verb, "get" | "list" | "search" | "export"), "destructiveHint": verb == "delete"});
    json!({
        "name": name(service, noun, verb),
        "title": format!("{verb} {noun}"),
        "description": format!("{says} {noun} in {service}. Needs the permission `{service}.{noun}`; answers with JSON."),
        "inputSchema": {"type": "object", "properties": properties, "required": required},
        "annotations": hints,
    })
}

const WORK: [&str; 10] = [
    "task",
    "sprint",
    "milestone",
    "board",
    "epic",
    "worklog",
    "checklist",
    "dependency",
    "roadmap",
    "estimate",
];

const SALES: [&str; 10] = [
    "lead",
    "deal",
    "contact",
    "quote",
    "pipeline",
    "campaign",
    "territory",
    "forecast",
    "contract",
    "account plan",
];

const MONEY: [&str; 10] = [
    "invoice",
    "payment",
    "subscription",
    "coupon",
    "payout",
    "dispute",
    "tax rate",
    "credit note",
    "ledger entry",
    "budget",
];

const PEOPLE: [&str; 10] = [
    "employee",
    "vacation request",
    "payslip",
    "job opening",
    "interview",
    "shift",
    "training",
    "appraisal",
    "badge",
    "expense report",
];

const CLOUD: [&str; 10] = [
    "server",
    "bucket",
    "firewall rule",
    "certificate",
    "deployment",
    "container",
    "snapshot",
    "load balancer",
    "dns record",
    "alarm",
];

const SHOP: [&str; 10] = [
    "product",
    "order",
    "shipment",
    "warehouse",
    "supplier",
    "return",
    "discount",
    "review",
    "gift card",
    "catalogue page",
];

const KINDS: [[&str; 10]; 6] = [WORK, SALES, MONEY, PEOPLE, CLOUD, SHOP];

const NAMES: [&str; 62] = [
    "planboard",
    "dealdesk",
    "payflow",
    "peoplehub",
    "cloudyard",
    "shopfront",
    "taskforge",
    "leadmill",
    "billworks",
    "staffly",
    "stackport",
    "cartwheel",
    "trackline",
    "sellstream",
    "coinbridge",
    "crewbase",
    "nodeharbor",
    "storelane",
    "workpath",
    "closerly",
    "moneta",
    "talentbox",
    "skyrack",
    "marketbay",
    "kanvas",
    "prospecto",
    "fiscalia",
    "rosterly",
    "infrahive",
    "vendora",
    "goalpost",
    "dealspring",
    "cashpoint",
    "hireway",
    "servermint",
    "goodsly",
    "sprintly",
    "funnelly",
    "ledgerly",
    "shiftwise",
    "hostarium",
    "basketly",
    "deskflow",
    "clientree",
    "taxwell",
    "peopleworks",
    "cloudnest",
    "tradepost",
    "milestoner",
    "salesbeam",
    "paywell",
    "teamdeck",
    "gridhost",
    "retailo",
    "projecta",
    "quotewise",
    "bankly",
    "humanly",
    "computa",
    "merchanto",
    "agilia",
    "partnera",
];

/// Six kinds of services, under the names of their makers: the nouns of a kind come back, as they do.
const fn services() -> [(&'static str, [&'static str; 10]); 62] {
    let mut services = [("", WORK); 62];
    let mut at = 0;
    while at < 62 {
        services[at] = (NAMES[at], KINDS[at % 6]);
        at += 1;
    }
    services
}
