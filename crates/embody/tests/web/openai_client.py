"""The official OpenAI client against `/v1`. Arguments: base URL, token. Prints one JSON object of what it saw."""

import json
import sys

import openai

base_url, token = sys.argv[1:]
client = openai.OpenAI(base_url=base_url, api_key=token, max_retries=2, timeout=60)
seen = {}


def complete(messages, **options):
    answer = client.chat.completions.with_raw_response.create(model="ada", messages=messages, **options)
    return answer.parse(), answer.headers["x-embody-thread"]


def refused(**request):
    try:
        client.chat.completions.create(**request)
    except openai.APIStatusError as error:
        return [error.status_code, error.body["message"]]
    return None


def streamed(messages):
    options = {"stream": True, "stream_options": {"include_usage": True}}
    text, reasons, usage, ids = "", [], None, set()
    for chunk in client.chat.completions.create(model="ada", messages=messages, **options):
        ids.add(chunk.id)
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reasons += [choice.finish_reason] if choice.finish_reason else []
    return {"text": text, "reasons": reasons, "total": usage.total_tokens, "ids": len(ids)}


seen["models"] = [model.id for model in client.models.list()]

conversation = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "hello"}]
first, thread = complete(conversation, temperature=0.1)
seen["first"] = [first.choices[0].message.content, first.choices[0].finish_reason, first.usage.total_tokens > 0]

conversation.append({"role": "assistant", "content": first.choices[0].message.content})
conversation.append({"role": "user", "content": [{"type": "text", "text": "look it up"}]})
second, same = complete(conversation)
seen["second"] = [second.choices[0].message.content, same == thread]

conversation.append({"role": "assistant", "content": second.choices[0].message.content})
conversation.append({"role": "user", "content": "and then"})
third, again = complete(conversation)
seen["third"] = [third.choices[0].message.content, again == thread]

# Another reply than ours: a conversation of its own, which contains what the client sent.
other = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "edited"}]
fourth, new = complete([*other, {"role": "user", "content": "and then"}])
seen["edited"] = [fourth.choices[0].message.content, new != thread]

# A turn that failed is not part of the conversation: the next attempt starts with what the client knows.
failing = [*conversation, {"role": "assistant", "content": third.choices[0].message.content}]
seen["broken"] = refused(model="ada", messages=[*failing, {"role": "user", "content": "break"}])
retried, fresh = complete([*failing, {"role": "user", "content": "hello"}])
seen["retried"] = [retried.choices[0].message.content, fresh != thread]

seen["stream"] = streamed([{"role": "user", "content": "hello"}])
seen["approval"] = streamed([{"role": "user", "content": "tell bob"}])["text"]

message = [{"role": "user", "content": "hello"}]
seen["no_model"] = refused(model="gpt-4", messages=message)
seen["no_text"] = refused(model="ada", messages=[])
seen["tool"] = refused(model="ada", messages=message, tool_choice="required")
seen["failed"] = refused(model="ada", messages=[{"role": "user", "content": "break"}])
try:
    list(client.chat.completions.create(model="ada", messages=[{"role": "user", "content": "break"}], stream=True))
except openai.APIError as error:
    seen["failed_stream"] = error.message

client.api_key = "wrong"
seen["token"] = refused(model="ada", messages=message)
print(json.dumps(seen))
