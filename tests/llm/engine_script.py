"""Run by the Python of LITERT_LM_PYTHON: what the engine makes of a .litertlm file, as JSON."""

import json
import sys

import litert_lm


def answer_of(message):
    return "".join(part["text"] for part in message["content"])


def main(path, texts, conversation):
    *before, last = conversation
    with litert_lm.Engine(path, cache_dir=":nocache") as engine:
        result = {"ids": [engine.tokenize(text) for text in texts], "raw": []}
        for text in texts:
            with engine.create_session(apply_prompt_template=False) as session:
                session.run_prefill([text])
                result["raw"].append(session.run_decode().texts[0])
        with engine.create_conversation(messages=before) as chat:
            result["rendered"] = chat.render_message_to_string(last)
            result["answer"] = answer_of(chat.send_message(last))
    return result


if __name__ == "__main__":
    sys.stdout.write("\n" + json.dumps(main(*json.load(sys.stdin))))
