"""Sign-up and password reset of the application, tested with pytest: at most ten lines for a mail."""

import json
import os
import time
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import Request, urlopen

APPLICATION, API = os.environ["APPLICATION"], os.environ["SENDWRIGHT_URL"]
HEADERS = {"Authorization": f"Bearer {os.environ['SENDWRIGHT_TOKEN']}", "Content-Type": "application/json"}
EMAIL = f"pytest.{time.time_ns()}@simulator.test"


def wait_for_mail(**search):
    body = json.dumps({**search, "limit": 1, "waitSeconds": 20}).encode()
    found = json.load(urlopen(Request(f"{API}/v1/messages/search", body, HEADERS)))["messages"]
    return json.load(urlopen(Request(f"{API}/v1/messages/{found[0]['messageId']}", headers=HEADERS)))


def post(url, **form):
    try:
        return urlopen(Request(url, urlencode(form).encode())).status
    except HTTPError as error:
        return error.code


def test_sign_up():
    post(f"{APPLICATION}/sign-up", email=EMAIL, password="first")
    assert post(f"{APPLICATION}/sign-in", email=EMAIL, password="first") == 404
    mail = wait_for_mail(recipient=EMAIL, subject="confirm")
    urlopen(mail["links"][0]["href"])
    assert post(f"{APPLICATION}/sign-in", email=EMAIL, password="first") == 200


def test_reset():
    post(f"{APPLICATION}/forgot", email=EMAIL)
    mail = wait_for_mail(recipient=EMAIL, subject="reset password")
    assert mail["text"].startswith("Choose a new password: http")
    post(mail["links"][0]["href"], password="second")
    assert post(f"{APPLICATION}/sign-in", email=EMAIL, password="second") == 200
