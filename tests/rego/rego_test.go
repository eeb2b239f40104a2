// Package rego tests the rules of the Gateway's decision point. Like the decision point, the tests evaluate the rules
// with OPA's own library. The file data.json contains the data that the policy `authorization` writes for a team of
// Agents. The tests replace the signing keys in these data, and add an Agent to them. The file routes.json contains the
// paths of rendered routes, and a test of the operator writes it.
package rego

import (
	"context"
	"crypto"
	"crypto/hmac"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"math/big"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/open-policy-agent/opa/v1/rego"
	"github.com/open-policy-agent/opa/v1/storage/inmem"
)

const (
	rules   = "../../guest-policies/authorization/src/policy.rego"
	cluster = "https://cluster"
	people  = "https://people"
	plain   = "system:serviceaccount:team:kaos-agent-plain"
	watcher = "system:serviceaccount:team:kaos-agent-watcher"
)

var (
	routes    = routesByTarget()
	toPlain   = to("agent/team/plain") + "/v1/chat/completions"
	toModel   = to("modelapi/team/llm") + "/v1/models"
	toWatcher = to("agent/team/watcher")
	toSums    = to("mcpserver/team/sums") + "/mcp"
	toWords   = to("mcpserver/team/words") + "/mcp"
	toNotes   = to("memorystore/team/notes") + "/v1/recall"
)

// routesByTarget returns the path of each rendered route. The key is the resource to which the route leads.
func routesByTarget() map[string]string {
	rendered, err := os.ReadFile("routes.json")
	if err != nil {
		panic(err)
	}
	var paths map[string]string
	if err := json.Unmarshal(rendered, &paths); err != nil {
		panic(err)
	}
	return paths
}

// to returns the path of the route that leads to a resource.
func to(resource string) string {
	path, there := routes["kaos://"+resource]
	if !there {
		panic("routes.json has no route to " + resource)
	}
	return path
}

type claims map[string]any

func encoded(bytes []byte) string { return base64.RawURLEncoding.EncodeToString(bytes) }

func part(value any) string {
	text, _ := json.Marshal(value)
	return encoded(text)
}

func key(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// signed returns a token that this key signs with RS256.
func signed(t *testing.T, key *rsa.PrivateKey, of claims) string {
	t.Helper()
	body := part(map[string]string{"alg": "RS256", "kid": "k", "typ": "JWT"}) + "." + part(of)
	digest := sha256.Sum256([]byte(body))
	signature, err := rsa.SignPKCS1v15(rand.Reader, key, crypto.SHA256, digest[:])
	if err != nil {
		t.Fatal(err)
	}
	return body + "." + encoded(signature)
}

func hour() int64 { return time.Now().Add(time.Hour).Unix() }

func user(more claims) claims {
	all := claims{"iss": people, "aud": "kaos", "sub": "u-1", "exp": hour()}
	for name, value := range more {
		if value == nil {
			delete(all, name)
		} else {
			all[name] = value
		}
	}
	return all
}

func agent(sub string, more claims) claims {
	all := user(claims{"iss": cluster, "aud": "kaos-gateway", "sub": sub})
	for name, value := range more {
		if value == nil {
			delete(all, name)
		} else {
			all[name] = value
		}
	}
	return all
}

type point struct {
	t     *testing.T
	query rego.PreparedEvalQuery
}

// dataWithKeys returns the content of data.json with these signing keys of the issuers `cluster` and `people`. It adds
// an Agent that does not use the identity of its ServiceAccount.
func dataWithKeys(t *testing.T, ofCluster, ofPeople *rsa.PrivateKey) map[string]any {
	t.Helper()
	known, err := os.ReadFile("data.json")
	if err != nil {
		t.Fatal(err)
	}
	var data map[string]any
	if err := json.Unmarshal(known, &data); err != nil {
		t.Fatal(err)
	}
	set := func(key *rsa.PrivateKey) map[string]any {
		exponent := encoded(big.NewInt(int64(key.E)).Bytes())
		one := map[string]any{"kty": "RSA", "kid": "k", "n": encoded(key.N.Bytes()), "e": exponent}
		return map[string]any{"keys": []any{one}}
	}
	kaos := data["kaos"].(map[string]any)
	kaos["jwks"] = map[string]any{cluster: set(ofCluster), people: set(ofPeople)}
	const client = "kaos://agent/team/client"
	kaos["agents"].(map[string]any)[client] = map[string]any{"autonomous": true, "issuer_azp": map[string]any{"issuer": cluster, "azp": "c"}}
	kaos["grants"].(map[string]any)[client] = []any{"kaos://modelapi/team/llm"}
	return data
}

// decisionPoint returns a decision point with the data of data.json, which trusts these signing keys.
func decisionPoint(t *testing.T, ofCluster, ofPeople *rsa.PrivateKey) point {
	t.Helper()
	return decisionPointWith(t, dataWithKeys(t, ofCluster, ofPeople))
}

// decisionPointWith returns a decision point with these data.
func decisionPointWith(t *testing.T, data map[string]any) point {
	t.Helper()
	text, err := os.ReadFile(rules)
	if err != nil {
		t.Fatal(err)
	}
	query, err := rego.New(
		rego.Query("data.kaos.authz.result"),
		rego.Module("policy.rego", string(text)),
		rego.Store(inmem.NewFromObject(data)),
	).PrepareForEval(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return point{t, query}
}

// allows returns whether the decision point allows a request.
func (p point) allows(path string, headers map[string]string) bool {
	p.t.Helper()
	sent := map[string]any{}
	for name, value := range headers {
		sent[name] = value
	}
	request := map[string]any{"method": "POST", "path": path, "headers": sent}
	input := map[string]any{"attributes": map[string]any{"request": map[string]any{"http": request}}}
	results, err := p.query.Eval(context.Background(), rego.EvalInput(input))
	if err != nil {
		p.t.Fatal(err)
	}
	if len(results) != 1 {
		p.t.Fatalf("%s has no decision", path)
	}
	decision := results[0].Expressions[0].Value.(map[string]any)
	allowed := decision["allowed"].(bool)
	if !allowed && decision["http_status"] != json.Number("403") {
		p.t.Fatalf("a denied request gets %v", decision)
	}
	return allowed
}

// outside returns the headers of a request from outside of the cluster, with this token.
func outside(token string) map[string]string {
	return map[string]string{"authorization": "Bearer " + token}
}

// hop returns the headers of a request that an Agent sends with the token `actor`. If `subject` is not empty, it is the
// token of the caller for whom the Agent acts.
func hop(actor, subject string) map[string]string {
	headers := map[string]string{"x-agent-authorization": actor}
	if subject != "" {
		headers["authorization"] = "Bearer " + subject
	}
	return headers
}

type row struct {
	name    string
	path    string
	headers map[string]string
	allowed bool
}

func check(p point, rows []row) {
	p.t.Helper()
	for _, row := range rows {
		if p.allows(row.path, row.headers) != row.allowed {
			p.t.Errorf("%s: %s must be allowed: %v", row.name, row.path, row.allowed)
		}
	}
}

func TestARequestFromOutsideNeedsAUserWithAGrant(t *testing.T) {
	ofCluster, ofPeople := key(t), key(t)
	p := decisionPoint(t, ofCluster, ofPeople)
	of := func(more claims) map[string]string { return outside(signed(t, ofPeople, user(more))) }
	staff := claims{"groups": []string{"other", "staff"}}
	ada := claims{"sub": "ada"}
	byMail := claims{"email": "ada@example.com", "email_verified": true}
	check(p, []row{
		{"a member of the group", toPlain, of(staff), true},
		{"a member of the group, with a query", toPlain + "?x=%2e", of(staff), true},
		{"a member of no group", toPlain, of(nil), false},
		{"a group that is no text", toPlain, of(claims{"groups": []any{1, nil}}), false},
		{"groups that are no list", toPlain, of(claims{"groups": "staff"}), false},
		{"a resource without a grant", toModel, of(staff), false},
		{"a person", toSums, of(ada), true},
		{"a person at an unselected resource", toWords, of(ada), false},
		{"a person by a verified email", toSums, of(byMail), true},
		{"a person by an unverified email", toSums, of(claims{"email": "ada@example.com"}), false},
		{"no token", toPlain, map[string]string{}, false},
		{"a token that is none", toPlain, outside("x.y.z"), false},
		{"a token without its scheme", toPlain, map[string]string{"authorization": signed(t, ofPeople, user(staff))}, false},
		{"two tokens", toPlain, outside(signed(t, ofPeople, user(staff)) + ",Bearer x"), false},
		{"an Agent's token as a user's", toModel, outside(signed(t, ofCluster, agent(plain, nil))), false},
	})
}

func TestAHopInsideNeedsAnAgentWithAGrantAndASubject(t *testing.T) {
	ofCluster, ofPeople := key(t), key(t)
	p := decisionPoint(t, ofCluster, ofPeople)
	of := func(sub string, more claims) string { return signed(t, ofCluster, agent(sub, more)) }
	person := signed(t, ofPeople, user(nil))
	staff := signed(t, ofPeople, user(claims{"groups": []string{"staff"}}))
	check(p, []row{
		{"for a user", toModel, hop(of(plain, nil), person), true},
		{"for a user, with a scheme", toModel, hop("Bearer "+of(plain, nil), person), true},
		{"to a peer", toWatcher, hop(of(plain, nil), person), true},
		{"to a server", toSums, hop(of(plain, nil), person), true},
		{"to a store that is granted", toNotes, hop(of(plain, nil), person), true},
		{"without a grant", toWords, hop(of(plain, nil), person), false},
		{"without a grant of its own, for a user with one", toPlain, hop(of(watcher, nil), staff), false},
		{"for nobody", toModel, hop(of(plain, nil), ""), false},
		{"autonomous, for itself", toModel, hop(of(watcher, nil), ""), true},
		{"for an autonomous Agent", toModel, hop(of(plain, nil), of(watcher, nil)), true},
		{"for an Agent that is not autonomous", toModel, hop(of(watcher, nil), of(plain, nil)), false},
		{"autonomous, with a subject that is none", toModel, hop(of(watcher, nil), "x"), false},
		{"of another namespace", toModel, hop(of("system:serviceaccount:other:kaos-agent-plain", nil), person), false},
		{"of another account", toModel, hop(of("system:serviceaccount:team:default", nil), person), false},
		{"of an Agent that the data does not know", toModel, hop(of("system:serviceaccount:team:kaos-agent-absent", nil), person), false},
		{"of an Agent with another identity", toModel, hop(of("system:serviceaccount:team:kaos-agent-client", nil), person), false},
		{"a user's token as an Agent's", toModel, hop(person, person), false},
		{"a broken Agent's token, with a user who has a grant", toPlain, hop("x", staff), false},
		{"an empty Agent's token, with a user who has a grant", toPlain, hop("", staff), false},
	})
}

func TestATokenIsOfItsIssuerForItsAudienceAndValidNow(t *testing.T) {
	ofCluster, ofPeople, stranger := key(t), key(t), key(t)
	p := decisionPoint(t, ofCluster, ofPeople)
	person := signed(t, ofPeople, user(nil))
	past := time.Now().Add(-time.Hour).Unix()
	wrong := map[string]claims{
		"expired":              {"exp": past},
		"without an end":       {"exp": nil},
		"with an end as text":  {"exp": "tomorrow"},
		"not valid yet":        {"nbf": hour()},
		"of another issuer":    {"iss": "https://other"},
		"without an issuer":    {"iss": nil},
		"for another audience": {"aud": "other"},
		"without an audience":  {"aud": nil},
		"without a subject":    {"sub": nil},
		"with an empty one":    {"sub": ""},
	}
	for name, more := range wrong {
		grouped := claims{"groups": []string{"staff"}}
		for claim, value := range more {
			grouped[claim] = value
		}
		check(p, []row{
			{"a user's token " + name, toPlain, outside(signed(t, ofPeople, user(grouped))), false},
			{"a subject's token " + name, toModel, hop(signed(t, ofCluster, agent(plain, nil)), signed(t, ofPeople, user(more))), false},
			{"an Agent's token " + name, toModel, hop(signed(t, ofCluster, agent(plain, more)), person), false},
			{"an autonomous Agent's token " + name, toModel, hop(signed(t, ofCluster, agent(watcher, more)), ""), false},
		})
	}
	several := claims{"aud": []string{"other", "kaos-gateway"}}
	check(p, []row{
		{"signed by somebody else", toModel, hop(signed(t, stranger, agent(plain, nil)), person), false},
		{"signed by the other issuer", toModel, hop(signed(t, ofPeople, agent(plain, nil)), person), false},
		{"for several audiences", toModel, hop(signed(t, ofCluster, agent(plain, several)), person), true},
	})
}

func TestOnlyRS256IsAccepted(t *testing.T) {
	ofCluster, ofPeople := key(t), key(t)
	p := decisionPoint(t, ofCluster, ofPeople)
	body := func(algorithm string) string {
		return part(map[string]string{"alg": algorithm, "kid": "k"}) + "." + part(agent(watcher, nil))
	}
	unsigned := body("none") + "."
	mac := hmac.New(sha256.New, ofCluster.N.Bytes())
	mac.Write([]byte(body("HS256")))
	symmetric := body("HS256") + "." + encoded(mac.Sum(nil))
	digest := sha256.Sum256([]byte(body("PS256")))
	padded, err := rsa.SignPSS(rand.Reader, ofCluster, crypto.SHA256, digest[:], &rsa.PSSOptions{SaltLength: rsa.PSSSaltLengthEqualsHash})
	if err != nil {
		t.Fatal(err)
	}
	check(p, []row{
		{"no algorithm", toModel, hop(unsigned, ""), false},
		{"a symmetric algorithm with the public key", toModel, hop(symmetric, ""), false},
		{"another algorithm of the same key", toModel, hop(body("PS256")+"."+encoded(padded), ""), false},
		{"RS256", toModel, hop(signed(t, ofCluster, agent(watcher, nil)), ""), true},
	})
}

func TestEachRouteLeadsToTheResourceThatItsHeaderNames(t *testing.T) {
	ofCluster, ofPeople := key(t), key(t)
	data := dataWithKeys(t, ofCluster, ofPeople)
	ada := outside(signed(t, ofPeople, user(claims{"sub": "ada"})))
	actor := hop(signed(t, ofCluster, agent(watcher, nil)), "")
	kinds := map[string]bool{}
	for resource := range routes {
		kinds[strings.Split(resource, "/")[2]] = true
		kaos := data["kaos"].(map[string]any)
		kaos["user_grants"] = map[string]any{"user:ada": []any{resource}}
		kaos["grants"] = map[string]any{"kaos://agent/team/watcher": []any{resource}}
		p := decisionPointWith(t, data)
		for other, path := range routes {
			for _, rest := range []string{"", "/", "/mcp", "/v1/x", "?x"} {
				check(p, []row{
					{"a user with a grant for " + resource, path + rest, ada, other == resource},
					{"an Agent with a grant for " + resource, path + rest, actor, other == resource},
				})
			}
		}
	}
	if len(kinds) != 4 {
		t.Errorf("routes.json has only the kinds %v", kinds)
	}
}

func TestAPathThatServersReadDifferentlyHasNoResource(t *testing.T) {
	ofCluster, ofPeople := key(t), key(t)
	p := decisionPoint(t, ofCluster, ofPeople)
	autonomous := hop(signed(t, ofCluster, agent(watcher, nil)), "")
	path := to("modelapi/team/llm")
	kind, without := strings.TrimSuffix(path, "/llm"), strings.TrimPrefix(path, "/")
	for _, path := range []string{
		"", "/", "/team", kind, kind + "/", without, "/" + path, strings.Replace(path, "/modelapi", "//modelapi", 1),
		path + "/../../agent/plain", path + "/..", path + "/%2e%2e/x", path + "%2fx",
		path + "/%2E%2E%2Fx", path + "\\x", path + "/%5cx", path + "/%252e",
		strings.Replace(path, "modelapi", "ModelAPI", 1), kind + "/LLM", "/team/secret/llm", path + "%00", kind + "/./llm",
		"/x" + path, "/team/mcpserver/llm",
	} {
		if p.allows(path, autonomous) {
			t.Errorf("%q is allowed", path)
		}
	}
	for _, rest := range []string{"", "/", "/a%20b?x=../..", "#x"} {
		if !p.allows(path+rest, autonomous) {
			t.Errorf("%q is denied", path+rest)
		}
	}
}
