# Decides about a request at the gateway. Everything that no rule below allows is denied.
#
# A request from outside has the token of a user, who needs a grant for the resource in the path. A request of an Agent
# has the Agent's own token. The Agent needs a grant for the resource in the path, and acts for a user or for an
# autonomous Agent. Tokens are signed with RS256 and end.
package kaos.authz

default allowed := false

result := {"allowed": true} if allowed

result := {"allowed": false, "http_status": 403, "body": "not allowed by kaos.authz"} if not allowed

allowed if {
	not is_of_agent
	some caller in user_callers(user)
	some resource in data.kaos.user_grants[caller]
	resource == target
}

allowed if {
	is_of_agent
	some resource in data.kaos.grants[actor]
	resource == target
	has_subject
}

# The Agent acts for a user.
has_subject if user.sub

# The Agent acts for an autonomous Agent, whose token it passes on.
has_subject if data.kaos.agents[agent_of(bearer(headers.authorization))].autonomous == true

# The Agent is autonomous, and acts for itself.
has_subject if {
	not "authorization" in object.keys(headers)
	data.kaos.agents[actor].autonomous == true
}

headers := input.attributes.request.http.headers

is_of_agent if "x-agent-authorization" in object.keys(headers)

# The kinds of resources, by the second part of the paths of their routes.
kinds := {"agent": "agent", "mcp": "mcpserver", "memorystore": "memorystore", "modelapi": "modelapi"}

# The resource in the path, for example kaos://mcpserver/team/sums for /team/mcp/sums. A path that a server could read in
# another way has no resource.
target := sprintf("kaos://%s/%s/%s", [kinds[parts[2]], parts[1], parts[3]]) if {
	path := split(split(input.attributes.request.http.path, "?")[0], "#")[0]
	not regex.match(`(?i)%(00|2e|2f|5c|25)|\\|//`, path)
	parts := split(path, "/")
	parts[0] == ""
	regex.match(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`, parts[1])
	regex.match(`^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`, parts[3])
	every part in parts { not part in {".", ".."} }
}

# The Agent that sends the request.
actor := agent_of(agent_token)

agent_token := trim_prefix(headers["x-agent-authorization"], "Bearer ")

bearer(header) := trim_prefix(header, "Bearer ") if startswith(header, "Bearer ")

# The Agent that a token belongs to, if the data knows it.
agent_of(token) := id if {
	claims := verified(token, data.kaos.agent)
	[_, namespace, name] := regex.find_all_string_submatch_n(`^system:serviceaccount:([^:]+):kaos-agent-([^:]+)$`, claims.sub, 1)[0]
	id := sprintf("kaos://agent/%s/%s", [namespace, name])
	data.kaos.agents[id].issuer_sub == {"issuer": data.kaos.agent.issuer, "sub": claims.sub}
}

# The claims of the user's token.
user := verified(bearer(headers.authorization), data.kaos.user)

# The names by which grants refer to a user. An email counts only if the identity provider has verified it.
user_callers(claims) := ({sprintf("user:%s", [claims.sub])} | emails(claims)) | groups(claims)

emails(claims) := {sprintf("user:%s", [claims.email]) | claims.email_verified == true}

groups(claims) := {sprintf("group:%s", [group]) |
	some group in claims.groups
	is_string(group)
}

# The claims of a token of this issuer, for this audience, that is valid now.
verified(token, of) := claims if {
	of.issuer != ""
	of.audience != ""
	answer := io.jwt.decode_verify(token, {
		"cert": json.marshal(data.kaos.jwks[of.issuer]),
		"alg": "RS256",
		"iss": of.issuer,
		"aud": of.audience,
	})
	answer[0] == true
	claims := answer[2]
	is_number(claims.exp)
	is_string(claims.sub)
	claims.sub != ""
}
