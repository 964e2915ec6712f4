"""The routes as OpenAPI 3.1, written once and held to the routes by a test."""

from typing import Any

VERSION = "1"
TEXTS = {
    ("get", "/v1/about"): "What is asked about: domain, n, beta, budget, plan in words, version.",
    (
        "post",
        "/v1/answers",
    ): "Answer up to 256 questions, each by itself: an answer or a refusal.",
    ("post", "/v1/sql"): "Answer one SELECT statement.",
    ("post", "/v1/share"): "Answer one rate: which part of the records meets a condition, by group or not.",
    ("post", "/v1/explain"): "What a question may cost and what its answer will be worth; asks nothing.",
    ("post", "/v1/bounds"): "Bounds on given answers that hold all at once.",
    ("post", "/v1/snapshot"): "Given answers as the hypothesis says them now, null where one stays.",
    ("get", "/v1/statistics"): "Public facts of now, and what is left of your part; never waits.",
    ("get", "/v1/events"): "Server-sent events: the statistics, again whenever they change.",
    ("get", "/v1/transcript"): "What was released, from a place on, at most 256 records.",
    ("get", "/v1/answers.csv"): "What was released, as a table, at most 4,096 records from a place on.",
    ("get", "/v1/summary"): "The session as text, Markdown and HTML.",
    ("get", "/v1/synthetic.csv"): "Synthetic rows drawn from the hypothesis: free, without any guarantee.",
    ("get", "/v1/openapi.json"): "This text.",
    ("get", "/health"): "Whether the process lives; needs no token.",
    ("get", "/ready"): "Whether questions can be answered; needs no token.",
    ("get", "/metrics"): "Prometheus text; of this machine only, or with a token.",
    ("get", "/"): "The page.",
    ("get", "/curator"): "The page of a curator: users, who paid, the log and the session.",
    ("post", "/login"): "Begin a visit of the page.",
    ("post", "/logout"): "End it.",
    ("post", "/ask"): "Ask by the form of the page.",
    ("get", "/page.js"): "The script of the page.",
    ("get", "/page.css"): "The looks of the page.",
}
OPEN = {"/health", "/ready", "/page.js", "/page.css", "/", "/login", "/logout"}
QUESTION = {
    "description": "A condition in SQL, or an object: conditions by attribute, and, or, not, marginal.",
    "oneOf": [{"type": "string"}, {"type": "object"}],
}
ENDS = {  # optional, of a table that grows
    name: {"type": "string", "maxLength": 10, "description": f"the {which} period that is asked about"}
    for name, which in (("since", "first"), ("until", "last"))
}
BODIES: dict[str, Any] = {
    "/v1/answers": {"questions": {"type": "array", "items": QUESTION, "maxItems": 256}},
    "/v1/sql": {"sql": {"type": "string", "maxLength": 4096}},
    "/v1/share": {"share": QUESTION},
    "/v1/explain": {"question": QUESTION},
    "/v1/bounds": {
        "questions": {"type": "array", "items": QUESTION},
        "values": {"type": "array"},
        "statuses": {"type": "array"},
    },
    "/v1/snapshot": {
        "questions": {"type": "array", "items": QUESTION},
        "values": {"type": "array"},
        "statuses": {"type": "array"},
        "bounds": {"type": "array", "description": "of each answer, null where it has none"},
    },
}
PROBLEM = {
    "type": "object",
    "properties": {
        "type": {"type": "string", "description": "stable code"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}


def openapi() -> dict[str, Any]:
    """Return the description of all routes."""
    paths: dict[str, Any] = {}
    for (method, path), text in TEXTS.items():
        said: dict[str, Any] = {
            "summary": text,
            "responses": {
                "200": {"description": "done"},
                "default": {
                    "description": "a problem",
                    "content": {"application/problem+json": {"schema": PROBLEM}},
                },
            },
        }
        if path not in OPEN:
            said["security"] = [{"token": []}]
        if path in BODIES:
            properties = {**BODIES[path], **ENDS}
            schema = {"type": "object", "properties": properties, "required": [*BODIES[path]]}
            said["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
        paths.setdefault(path, {})[method] = said
    return {
        "openapi": "3.1.0",
        "info": {"title": "onlineic", "version": VERSION},
        "paths": paths,
        "components": {"securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}},
    }
