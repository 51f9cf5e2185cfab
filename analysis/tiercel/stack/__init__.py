"""Builds a site's programs with Spack: resolves, installs, mirrors, and tells later steps where they are."""

from __future__ import annotations

from tiercel.stack.environment import Environment
from tiercel.stack.prepare import prepare

__all__ = ["Environment", "prepare"]
