"""The routes of text models: classification, its explanation, and text generation by a language model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.responses import JSONResponse

from bitext.cancellation import between_steps
from translucid.ground.errors import UserError
from translucid.inspection.explain import available_methods, explain, faithfulness, random_faithfulness
from translucid.inspection.inspected import rounded_probability
from translucid.language.label_case import LabelCase, contrast_labels
from translucid.language.text_classifier import SingleClassifier
from translucid.serving.edge.failures import ApiError
from translucid.serving.requests import Handlers, contrast_fields, number_field, text_field

if TYPE_CHECKING:
    from translucid.decoding.decoding_options import DecodingOptions
    from translucid.language.generator import Generated, Piece

LONGEST = 5000
"""The maximum number of characters in a text that is classified or continued."""
MAX_EXPLAINED = 2000
"""The maximum number of characters in a text whose label is explained; each word of it is left out once."""
MAX_TOKENS = 200
"""The maximum number of tokens that are generated."""
MAX_CANDIDATES = 8
"""The maximum number of candidates that are returned at each step."""


class TextModelRoutes(Handlers):
    """The handlers; `routing.py` binds them to their paths."""

    async def classify(self, request: Request) -> JSONResponse:
        """Classify a text, and return the label's probability after each word, with an explanation if requested."""
        fields, task = await self.context.fields(request)
        served = self.context.catalog.other("texts with labels", text_field(fields, "model", "") or None)
        text = text_field(fields, "q", max_length=LONGEST)
        method, label = text_field(fields, "explain", ""), text_field(fields, "label", "")
        instead_of, _ = contrast_fields(fields, method)
        if not text.strip():
            raise ApiError(400, "Invalid request: there are no words to classify")
        if label and label not in served.model.labels:
            raise ApiError(400, f"Invalid request: there is no label {label[:50]!r}")
        if method and (method not in available_methods() or method == "attention"):
            raise ApiError(400, f"Invalid request: there is no explanation by {method[:20]!r} here")
        if method and len(text) > MAX_EXPLAINED:
            message = f"Invalid request: {len(text)} characters exceed the limit of {MAX_EXPLAINED} for explain"
            raise ApiError(400, message)

        def answer() -> dict[str, Any]:
            result, member = served.model.classify(text), served.model.members[0]
            between_steps()
            probabilities = {name: round(value, 6) for name, value in result.probabilities.items()}
            row = {"label": result.label, "probabilities": probabilities}
            return row | _words(member, text, label or result.label, method, instead_of)

        return JSONResponse({"model": served.name, **await task.run(answer)})

    async def generate(self, request: Request) -> JSONResponse:
        """Continue a text, and return the probability of each piece and of other candidates."""
        fields, task = await self.context.fields(request)
        served = self.context.catalog.other("running text", text_field(fields, "model", "") or None)
        prompt, options = text_field(fields, "q", "", LONGEST), _decoding(fields, served.model.configuration.decoding)
        max_tokens = number_field(fields, "max_tokens", 50, MAX_TOKENS, minimum=1)
        candidate_count = number_field(fields, "considered", 0, MAX_CANDIDATES)

        def answer() -> dict[str, Any]:
            result = served.model.generate(prompt, options, max_tokens=max_tokens)
            between_steps()
            row = {"text": result.text, "ended": result.nbest[0].ended, "backwards": result.backwards}
            return {**row, "pieces": _pieces(result, candidate_count)}

        return JSONResponse({"model": served.name, **await task.run(answer)})


def _words(member: SingleClassifier, text: str, label: str, method: str, instead_of: str) -> dict[str, Any]:
    """Return each word with the label's probability after it, and with its importance if there is a method.

    With another label, `instead_of`, the importance is that for the log-odds of the two.
    """
    (ids,) = member.ids([text])
    try:
        case = LabelCase(member.model, member.tokenizer, ids, label, text)
    except UserError:  # the tokenizer has removed all characters of the text
        return {"words": []}
    rows: list[dict[str, Any]] = []
    for word, probability in zip(case.source_words, case.unfolding().tolist(), strict=True):
        rows.append({"word": word, "probability": round(probability, 5)})
    if not method:
        return {"words": rows}
    contrasted = contrast_labels(case, instead_of) if instead_of else None
    explained = contrasted or case
    explanation = explain(explained, method, samples=200)
    for row, value in zip(rows, explanation.importance[0].tolist(), strict=True):
        row["importance"] = round(value, 4)
    record: dict[str, Any] = {"method": method, "label": label, "fit": explanation.fit}
    record["faithfulness"] = faithfulness(explained, explanation)._asdict()
    record["random"] = random_faithfulness(explained)._asdict()
    if contrasted:
        record["contrast"] = contrasted.to_json()
    return {"words": rows, "explanation": record}


def _decoding(fields: dict[str, Any], decoding: DecodingOptions) -> DecodingOptions:
    """Return the decoding options of a run with those of a request.

    Raises:
        ApiError: 400, a value is invalid.
    """
    from translucid.language.generator import generation_options

    changes: dict[str, Any] = {}
    for name in ("temperature", "top_p"):
        if name in fields:
            try:
                changes[name] = float(fields[name])
            except (TypeError, ValueError) as error:
                raise ApiError(400, f"Invalid request: {name} is not a number") from error
    for name, maximum in (("top_k", 1_000_000), ("seed", 2**31), ("beam", 10)):
        if name in fields:
            changes[name] = number_field(fields, name, 0, maximum)
    try:
        return generation_options(decoding.model_copy(update={"nbest": 1}), changes)
    except UserError as error:
        raise ApiError(400, f"Invalid request: {error}") from error


def _pieces(result: Generated, count: int) -> list[dict[str, Any]]:
    """Return the generated pieces, each with this number of candidates at its step."""
    rows = list(map(_piece, result.nbest[0].written))
    if count:
        for row, candidates in zip(rows, result.considered(count), strict=True):
            row["considered"] = list(map(_piece, candidates))
    return rows


def _piece(piece: Piece) -> dict[str, Any]:
    return {"piece": piece.text, "probability": rounded_probability(piece.log_probability)}
