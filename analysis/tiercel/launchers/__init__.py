"""Launchers: what starts an engine on all processes of a run. One file each."""

from tiercel.launchers.base import Launcher, launchers, resolve

__all__ = ["Launcher", "launchers", "resolve"]
