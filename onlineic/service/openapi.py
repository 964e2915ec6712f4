"""The routes as OpenAPI 3.1, written once and held to the routes and their replies by tests."""

from typing import Any, final

import attrs

VERSION = "1"
NUMBER: dict[str, Any] = {"type": ["number", "null"]}
NUMBERS = {"description": "a number; of a cross table nested lists", "type": ["number", "array"], "items": {}}
TEXT, COUNT, YES = {"type": "string"}, {"type": "integer"}, {"type": "boolean"}
FREE: dict[str, Any] = {"type": "object"}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(required: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Return the schema of an object: these members, and others that it may have."""
    return {"type": "object", "required": [*required], "properties": {**required, **more}}


def _list(of: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of}


QUESTION = {
    "description": "A condition in SQL, or an object: conditions by attribute, and, or, not, marginal.",
    "oneOf": [TEXT, FREE],
}
ENDS: dict[str, dict[str, Any]] = {  # optional, of a table that grows
    name: {"type": "string", "maxLength": 10, "description": f"the {which} period that is asked about"}
    for name, which in (("since", "first"), ("until", "last"))
}
WITHIN = {
    "description": "How exact each number is to be, fraction of the records: a number, for certain, or an "
    "object for the usual error. A question that is an object can have one of its own.",
    "oneOf": [
        {"type": "number", "exclusiveMinimum": 0},
        {"type": "object", "properties": {"certain": {}, "expected": {}, "parts": {"type": "integer"}}},
    ],
}
KEY = {
    "name": "Idempotency-Key",
    "in": "header",
    "description": "Of one request: sent again with it, it is not asked again, and has the same reply.",
    "schema": {"type": "string", "maxLength": 80},
}
PAID: dict[str, Any] = {
    "paid": {"type": "number", "description": "what you have paid for the request, as a part of the budget"},
    "paid_of_part": {"type": "number", "description": "the same as a part of yours"},
}
SCHEMAS: dict[str, Any] = {
    "Question": QUESTION,
    "Problem": _object({"type": TEXT, "title": TEXT, "status": COUNT, "detail": TEXT}),
    "Answer": _object(
        {
            "query": {"type": ["string", "null"]},
            "labels": FREE,
            "n": COUNT,
            "value": NUMBERS,
            "count": NUMBERS,
            "status": {"enum": ["easy", "hard", "repeat", "untested"]},
            "error_bound": NUMBER,
            "count_bound": NUMBER,
            "bracket": {"type": "array", "items": {}, "minItems": 2, "maxItems": 2},
            "private": YES,
        },
        reason={"enum": ["covered", "test", "bought", "known", "within", "budget", None]},
        expected_error={"type": ["number", "array", "null"], "items": {}},
        count_expected_error={"type": ["number", "array", "null"], "items": {}},
        cost={"type": ["number", "null"], "description": "part of the budget that this answer took"},
        at={"type": ["integer", "null"], "description": "place in the record"},
    ),
    "Error": _object({"error": _object({"code": TEXT, "message": TEXT})}),
    "Outcome": {"oneOf": [_ref("Answer"), _ref("Error")]},
    "Outcomes": _object({"answers": _list(_ref("Outcome"))}, within=WITHIN, **PAID),
    "Number": _object(
        {"name": TEXT, "value": NUMBER, "error_bound": NUMBER, "confidence": NUMBER, "private": YES}
    ),
    "Table": _object({"columns": FREE, "confidences": FREE, "biases": FREE, "private": YES}, chosen=TEXT),
    "Statement": {"oneOf": [_ref("Answer"), _ref("Number"), _ref("Table")]},
    "Groups": _object({"name": TEXT, "columns": FREE, "confidence": NUMBER, "private": YES}),
    "Share": {"oneOf": [_ref("Number"), _ref("Groups")]},
    "Explanation": _object(
        {
            "form": TEXT,
            "attributes": _list(TEXT),
            "answers": COUNT,
            "constants": COUNT,
            "repeats": COUNT,
            "bound_easy": NUMBER,
            "bound_hard": NUMBER,
            "bound_derived": NUMBER,
            "few_records": YES,
            "price": NUMBER,
            "hits_left": COUNT,
            "at_most": NUMBER,
            "left": NUMBER,
            "payable": YES,
            "free": YES,
            "shared": NUMBER,
            "tables": NUMBER,
            "bought": COUNT,
            "expected": NUMBER,
            "restarts_left": {"type": ["integer", "null"]},
            "of_part": {**NUMBER, "description": "at_most and tables as a part of yours"},
        },
        within=WITHIN,
    ),
    "Prospects": _object({"prospects": _list(_object({"answer": _ref("Answer"), "joint": NUMBER}))}),
    "Bounds": _object({"bounds": _list(NUMBER)}),
    "Snapshot": _object({"answers": _list({"oneOf": [_ref("Answer"), {"type": "null"}]})}),
    "You": _object(
        {"name": TEXT, "share": NUMBER, "paid": NUMBER, "left": NUMBER, "hard_left": COUNT, "finest": NUMBER}
    ),
    "Statistics": _object(
        {
            "n": COUNT,
            "asked": COUNT,
            "spent": NUMBER,
            "hard_left": COUNT,
            "measured_left": COUNT,
            "length": COUNT,
            "you": _ref("You"),
        }
    ),
    "Progress": _object(
        {"state": {"enum": ["unknown", "waiting", "asking", "done"]}},
        before=COUNT,
        asked=COUNT,
        done=COUNT,
        seconds=NUMBER,
    ),
    "About": _object(
        {
            "domain": FREE,
            "n": COUNT,
            "n_bound": COUNT,
            "beta": NUMBER,
            "budget": FREE,
            "version": TEXT,
            "finest": NUMBER,
        },
        within=WITHIN,
    ),
    "Transcript": _object(
        {"answers": _list(_ref("Answer")), "next": {"type": ["integer", "null"]}, "length": COUNT}
    ),
    "Synthetic": _object({"columns": FREE, "seed": COUNT, "private": YES, "learned": YES}),
    "Summary": _object({"text": TEXT, "markdown": TEXT, "html": TEXT}),
}


@final
@attrs.frozen
class Route:
    """One route.

    Attributes:
        reply: Name of a schema, or a media type.
        query: Parameters of the address, each with its schema and what it means.
        body: Members of the object that is sent.
        beside: Members that it may have besides.
        open: Whether it needs no token.
        keyed: Whether it takes a key.
    """

    text: str
    reply: str
    query: dict[str, tuple[dict[str, Any], str]] = attrs.field(factory=dict)
    body: dict[str, Any] | None = None
    beside: dict[str, Any] = attrs.field(factory=dict)
    open: bool = False
    keyed: bool = False
    either: bool = False


def _page(text: str, **more: Any) -> Route:
    return Route(text, "text/html", **more)


GIVEN = {"questions": _list(_ref("Question")), "values": _list({}), "statuses": _list(TEXT)}
FORM = {"the form": (TEXT, "fields of the form, as an address of the page has them")}
SPAN: dict[str, tuple[dict[str, Any], str]] = {name: (one, one["description"]) for name, one in ENDS.items()}
FROM: dict[str, tuple[dict[str, Any], str]] = {"from": (COUNT, "the first place; 0 if it is left out")}
ROUTES: dict[tuple[str, str], Route] = {
    ("get", "/v1/about"): Route("What is asked about: domain, n, beta, budget, version.", "About", SPAN),
    ("post", "/v1/answers"): Route(
        "Answer up to 256 questions, each by itself: an answer or a refusal.", "Outcomes", keyed=True,
        body={"questions": {**_list(_ref("Question")), "maxItems": 256}}, beside={"within": WITHIN},
    ),
    ("post", "/v1/sql"): Route(
        "Answer one SELECT statement.", "Statement", keyed=True,
        body={"sql": {"type": "string", "maxLength": 4096}}, beside={"within": WITHIN},
    ),
    ("post", "/v1/share"): Route(
        "Answer one rate: which part of the records meets a condition, by group or not.", "Share",
        keyed=True, body={"share": FREE}, beside={"where": FREE, "by": _list({})},
    ),
    ("post", "/v1/explain"): Route(
        "What a question, or several, may cost you, and what the answer will be worth; asks nothing.",
        "Explanation", either=True, body={"question": _ref("Question"), "questions": _list(_ref("Question"))},
        beside={"within": WITHIN},
    ),
    ("post", "/v1/prospects"): Route(
        "What questions would be answered if no test fired: for explanations alone, without any guarantee.",
        "Prospects", body={"questions": {**_list(_ref("Question")), "maxItems": 256}},
    ),
    ("post", "/v1/bounds"): Route("Bounds on given answers that hold all at once.", "Bounds", body=GIVEN),
    ("post", "/v1/snapshot"): Route(
        "Given answers as the hypothesis says them now, null where one stays.", "Snapshot",
        body={**GIVEN, "bounds": {**_list(NUMBER), "description": "of each answer, null where it has none"}},
    ),
    ("get", "/v1/statistics"): Route(
        "Public facts of now, and what is left of your part; never waits.", "Statistics",
        {"family": (COUNT, "1: with the queries that released tables bound all at once")},
    ),
    ("get", "/v1/progress"): Route(
        "How far a request of yours with a key has come; never waits.", "Progress", {"key": (TEXT, "its key")}
    ),
    ("get", "/v1/events"): Route(
        "Server-sent events: the statistics, again whenever they change.", "text/event-stream"
    ),
    ("get", "/v1/transcript"): Route(
        "What was released, from a place on.", "Transcript",
        {**FROM, "limit": ({"type": "integer", "minimum": 1}, "records at most; 256 is the most")},
    ),
    ("get", "/v1/answers.csv"): Route("All that was released, one row a number.", "text/csv", FROM),
    ("get", "/v1/summary"): Route(
        "The session as text, Markdown and HTML.", "Summary",
        {"answers": (COUNT, "that are listed, at most 256")},
    ),
    ("get", "/v1/synthetic.csv"): Route(
        "Synthetic rows drawn from what was learned, before anything was asked from all possible records "
        "alike: free, without any guarantee.",
        "text/csv",
        {"rows": (COUNT, "at most 10,000; 1,000 if it is left out"), "seed": (COUNT, "public"), **SPAN},
    ),
    ("get", "/v1/synthetic.json"): Route(
        "The same rows as columns.", "Synthetic",
        {"rows": (COUNT, "at most 10,000; 1,000 if it is left out"), "seed": (COUNT, "public"), **SPAN},
    ),
    ("get", "/v1/openapi.json"): Route("This text.", "application/json", open=True),
    ("get", "/health"): Route("Whether the process lives.", "text/plain", open=True),
    ("get", "/ready"): Route("Whether questions can be answered; 503 if not.", "text/plain", open=True),
    ("get", "/metrics"): Route("Prometheus text.", "text/plain"),
    ("get", "/"): _page("The page, with the question of the address; asks nothing.", query=FORM, open=True),
    ("post", "/ask"): _page("Ask by the form of the page, and go to the address of the answer.", open=True),
    ("get", "/ask"): _page("Go to the form of the page.", query=FORM, open=True),
    ("get", "/result.csv"): Route("What the question of the address was told.", "text/csv", FORM),
    ("get", "/result.json"): Route("The same as JSON.", "application/json", FORM),
    ("get", "/mine"): _page("Your questions."),
    ("get", "/help"): _page("What the words of the page mean.", open=True),
    ("get", "/curator"): _page("The page of a curator: users, who paid, the log and the session."),
    ("post", "/login"): _page("Begin a visit of the page.", open=True),
    ("get", "/login"): _page("Go to the page.", open=True),
    ("post", "/logout"): _page("End a visit.", open=True),
    ("get", "/page.js"): Route("The script of the page.", "text/javascript", open=True),
    ("get", "/page.css"): Route("The looks of the page.", "text/css", open=True),
    ("get", "/icon.svg"): Route("The icon of the page.", "image/svg+xml", open=True),
    ("get", "/favicon.ico"): Route("The same.", "image/svg+xml", open=True),
}  # fmt: skip


def openapi() -> dict[str, Any]:
    """Return the description of all routes."""
    paths: dict[str, Any] = {}
    for (method, path), route in ROUTES.items():
        media = "application/json" if route.reply in SCHEMAS else route.reply
        content = {media: {"schema": _ref(route.reply)} if route.reply in SCHEMAS else {}}
        said: dict[str, Any] = {
            "summary": route.text,
            "responses": {
                "200": {"description": "done", "content": content},
                "default": {
                    "description": "a problem; a page where the request takes text/html",
                    "content": {"application/problem+json": {"schema": _ref("Problem")}},
                },
            },
        }
        parameters = [
            {"name": name, "in": "query", "schema": schema, "description": meaning}
            for name, (schema, meaning) in route.query.items()
        ]
        if route.keyed:
            parameters.append(KEY)
        if parameters:
            said["parameters"] = parameters
        if not route.open:
            said["security"] = [{"token": []}]
        if route.body is not None:
            required = [] if route.either else [*route.body]
            schema = {
                "type": "object",
                "properties": {**route.body, **route.beside, **ENDS},
                "required": required,
            }
            said["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        paths.setdefault(path, {})[method] = said
    return {
        "openapi": "3.1.0",
        "info": {"title": "onlineic", "version": VERSION},
        "paths": paths,
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }
