"""Logins to servers that ask for one, by OAuth: made by a command, kept for the user, renewed by themselves.

server_auth    the login of a server on its requests: `auth_for`      problems   why there is no token: `NeedsLogin`
login          logging in and out, by a person                        redirect   where the browser comes back to
renewal        one process at a time renews                           store      where logins are kept
keyring_door   the keyring of the desktop                             transfer   requests that stay bounded and private
"""

from toolsearch.mcp.oauth.problems import NeedsLogin, NeedsMoreRights, RenewalFailed
from toolsearch.mcp.oauth.server_auth import ServerAuth, auth_for, login_stamp

__all__ = ["NeedsLogin", "NeedsMoreRights", "RenewalFailed", "ServerAuth", "auth_for", "login_stamp"]
