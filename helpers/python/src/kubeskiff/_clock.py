"""What time it is for a control plane."""

from __future__ import annotations

import re
from datetime import datetime, timedelta, timezone
from typing import Any

from ._api import Api

_PATH = "/skiff/v1/clock"


class Clock:
    """The clock of one control plane: for creation times, tokens, events and leases. Nobody has to sleep."""

    def __init__(self, api: Api) -> None:
        self._api = api

    @property
    def now(self) -> datetime:
        """The time that it shows."""
        shown: str = self._api.send("GET", _PATH)["time"]
        # Microseconds are all that Python keeps, and of them it reads six digits.
        whole = re.sub(r"\.\d+", lambda digits: digits[0][:7].ljust(7, "0"), shown)
        return datetime.fromisoformat(whole.replace("Z", "+00:00"))

    def set(self, time: datetime) -> None:
        """Has it show a time, which has a time zone, and go on from there."""
        if time.tzinfo is None:
            raise ValueError("the time has no time zone")
        self._put(time=time.astimezone(timezone.utc).isoformat())

    def advance(self, by: float | timedelta) -> None:
        """Moves it on by so many seconds, or back."""
        seconds = by.total_seconds() if isinstance(by, timedelta) else by
        self._put(advance=f"{round(seconds * 1e6)}us")

    def freeze(self) -> None:
        """Has it stand still, until `run`."""
        self._put(frozen=True)

    def run(self) -> None:
        """Has it go on from what it shows."""
        self._put(frozen=False)

    def reset(self) -> None:
        """Makes it that of the machine."""
        self._put()

    def _put(self, **fields: Any) -> None:
        self._api.send("PUT", _PATH, fields)
