package rego

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/open-policy-agent/opa/cmd"
	"github.com/open-policy-agent/opa/v1/plugins"
	"github.com/open-policy-agent/opa/v1/runtime"
	"sigs.k8s.io/yaml"
)

const (
	chart   = "../../deploy/helm/kaos-operator"
	name    = "kaos-pdp"
	plugin  = "envoy_ext_authz_grpc"
	release = "kaos-system"
)

// manifest has only those fields of the chart's objects that the test reads.
type manifest struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name string `json:"name"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
	Spec struct {
		Ports []struct {
			Port       int `json:"port"`
			TargetPort any `json:"targetPort"`
		} `json:"ports"`
		Template struct {
			Spec podSpec `json:"spec"`
		} `json:"template"`
	} `json:"spec"`
}

type podSpec struct {
	Containers []struct {
		Args           []string `json:"args"`
		ReadinessProbe struct {
			HTTPGet struct {
				Path string `json:"path"`
			} `json:"httpGet"`
		} `json:"readinessProbe"`
		VolumeMounts []struct {
			Name      string `json:"name"`
			MountPath string `json:"mountPath"`
		} `json:"volumeMounts"`
	} `json:"containers"`
	Volumes []struct {
		Name      string `json:"name"`
		ConfigMap struct {
			Name  string `json:"name"`
			Items []struct {
				Key  string `json:"key"`
				Path string `json:"path"`
			} `json:"items"`
		} `json:"configMap"`
	} `json:"volumes"`
}

// envoy is the configuration of the plugin that answers the Gateway. Instead of the plugin, the method New only stores
// the configuration, and creates an empty plugin.
type envoy struct {
	Addr string `json:"addr"`
	Path string `json:"path"`
}

var (
	configured envoy
	register   sync.Once
)

func (envoy) Validate(_ *plugins.Manager, config []byte) (any, error) {
	decoder := json.NewDecoder(bytes.NewReader(config))
	decoder.DisallowUnknownFields()
	var read envoy
	err := decoder.Decode(&read)
	return read, err
}

func (envoy) New(manager *plugins.Manager, config any) plugins.Plugin {
	configured = config.(envoy)
	return &started{manager}
}

type started struct{ manager *plugins.Manager }

func (s *started) Start(context.Context) error {
	s.manager.UpdatePluginStatus(plugin, &plugins.Status{State: plugins.StateOK})
	return nil
}
func (*started) Stop(context.Context)             {}
func (*started) Reconfigure(context.Context, any) {}

// rendered returns the objects that the chart renders with the values in ci/decision-point-values.yaml.
func rendered(t *testing.T) []manifest {
	t.Helper()
	helm, err := filepath.Abs("../../target/control-plane/helm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(helm); err != nil {
		if helm, err = exec.LookPath("helm"); err != nil {
			t.Fatal("helm is not there: tests/control-plane/provision helm")
		}
	}
	command := exec.Command(helm, "template", "kaos", chart, "--namespace", release, "--values", chart+"/ci/decision-point-values.yaml")
	out, err := command.Output()
	if err != nil {
		t.Fatalf("helm: %v", err)
	}
	var all []manifest
	for _, text := range strings.Split(string(out), "\n---\n") {
		var one manifest
		// Skip an object that does not fit the type `manifest`.
		if yaml.Unmarshal([]byte(text), &one) == nil {
			all = append(all, one)
		}
	}
	return all
}

func find(t *testing.T, all []manifest, kind, name string) manifest {
	t.Helper()
	at := slices.IndexFunc(all, func(one manifest) bool { return one.Kind == kind && one.Metadata.Name == name })
	if at < 0 {
		t.Fatalf("the chart has no %s %s", kind, name)
	}
	return all[at]
}

// mounted is a folder with the content of a ConfigMap, as Kubernetes mounts it. Each file is a link to a file in
// `..data`, and `..data` is a link to a hidden folder. To update all files at once, `write` replaces the link `..data`
// by one rename.
type mounted struct {
	t      *testing.T
	folder string
	paths  map[string]string
	number int
}

func (m *mounted) write(content map[string]string) {
	m.t.Helper()
	m.number++
	version := fmt.Sprintf("..version_%d", m.number)
	must := func(err error) {
		if err != nil {
			m.t.Fatal(err)
		}
	}
	must(os.Mkdir(filepath.Join(m.folder, version), 0o755))
	for key, path := range m.paths {
		must(os.WriteFile(filepath.Join(m.folder, version, path), []byte(content[key]), 0o644))
	}
	must(os.Symlink(version, filepath.Join(m.folder, "..data_tmp")))
	must(os.Rename(filepath.Join(m.folder, "..data_tmp"), filepath.Join(m.folder, "..data")))
	if m.number == 1 {
		for _, path := range m.paths {
			must(os.Symlink(filepath.Join("..data", path), filepath.Join(m.folder, path)))
		}
		return
	}
	must(os.RemoveAll(filepath.Join(m.folder, fmt.Sprintf("..version_%d", m.number-1))))
}

// freeAddress returns an address that no other process uses now.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "localhost:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

func text(t *testing.T, path string) string {
	t.Helper()
	read, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(read)
}

// TestOPARunsWithTheArgumentsOfTheChart runs OPA with the arguments of the chart's Deployment kaos-pdp. OPA loads the
// files that the Deployment mounts. In the decision point's image, a plugin answers the Gateway over gRPC. OPA's
// library does not contain this plugin, so the test asks OPA over HTTP, and checks only the plugin's configuration.
func TestOPARunsWithTheArgumentsOfTheChart(t *testing.T) {
	all := rendered(t)
	pod := find(t, all, "Deployment", name).Spec.Template.Spec
	container := pod.Containers[0]
	volume, mount := pod.Volumes[0].ConfigMap, container.VolumeMounts[0]

	// The Deployment must mount the ConfigMap that the operator writes, with all keys of this ConfigMap.
	if wanted := find(t, all, "ConfigMap", "kaos-operator-config").Data["AUTHZ_POLICY_CONFIGMAP_NAME"]; volume.Name != wanted {
		t.Errorf("the Deployment mounts ConfigMap %s, and the operator writes %s", volume.Name, wanted)
	}
	policy := mounted{t: t, folder: t.TempDir(), paths: map[string]string{}}
	for _, item := range volume.Items {
		policy.paths[item.Key] = item.Path
	}
	ofCluster, ofPeople := key(t), key(t)
	data := dataWithKeys(t, ofCluster, ofPeople)
	content := func() map[string]string {
		encoded, err := json.Marshal(data)
		if err != nil {
			t.Fatal(err)
		}
		return map[string]string{"policy.rego": text(t, rules), "data.json": string(encoded)}
	}
	for key := range content() {
		if _, mounts := policy.paths[key]; !mounts {
			t.Errorf("the Deployment does not mount the key %s", key)
		}
	}
	policy.write(content())

	api, diagnostics := freeAddress(t), freeAddress(t)
	arguments := slices.Clone(container.Args)
	for at, argument := range arguments {
		switch {
		case argument == mount.MountPath:
			arguments[at] = policy.folder
		case strings.HasPrefix(argument, "--addr="):
			arguments[at] = "--addr=" + api
		case strings.HasPrefix(argument, "--diagnostic-addr="):
			arguments[at] = "--diagnostic-addr=" + diagnostics
		case strings.HasPrefix(argument, "--shutdown-wait-period="):
			arguments[at] = "--shutdown-wait-period=0"
		}
	}
	if !slices.Contains(arguments, policy.folder) {
		t.Fatalf("OPA does not load %s: %v", mount.MountPath, container.Args)
	}
	register.Do(func() { runtime.RegisterPlugin(plugin, envoy{}) })
	opa := cmd.Command(nil, "OPA")
	opa.SetArgs(arguments)
	ended := make(chan error, 1)
	go func() { ended <- opa.Execute() }()
	// At the end, send this process the signal with which Kubernetes ends a pod. OPA runs in this process and handles the
	// signal, so the signal ends OPA but not the test.
	defer func() {
		if err := syscall.Kill(os.Getpid(), syscall.SIGTERM); err != nil {
			t.Error(err)
		}
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()

	until := func(what string, holds func() bool) {
		t.Helper()
		for !holds() {
			select {
			case err := <-ended:
				// OPA has ended and no longer handles the signal. So ignore the signal, because it would end the test.
				signal.Ignore(syscall.SIGTERM)
				ended <- err
				t.Fatalf("OPA ended before %s: %v", what, err)
			default:
			}
		}
	}
	probe := "http://" + diagnostics + container.ReadinessProbe.HTTPGet.Path
	until("it is ready", func() bool {
		answer, err := http.Get(probe)
		if err != nil {
			return false
		}
		defer answer.Body.Close()
		return answer.StatusCode == http.StatusOK
	})

	// The Service must lead to the port on which the plugin listens.
	service := find(t, all, "Service", name).Spec.Ports[0]
	if configured.Addr != fmt.Sprintf(":%v", service.TargetPort) {
		t.Errorf("the plugin listens on %s, and the Service's port leads to %v", configured.Addr, service.TargetPort)
	}
	if service.Port != 9191 {
		t.Errorf("SecurityPolicies name port 9191, and the Service has %d", service.Port)
	}

	watchers := signed(t, ofCluster, agent(watcher, nil))
	allows := func(path string) bool {
		t.Helper()
		request := map[string]any{"method": "POST", "path": path, "headers": hop(watchers, "")}
		input := map[string]any{"input": map[string]any{"attributes": map[string]any{"request": map[string]any{"http": request}}}}
		body, _ := json.Marshal(input)
		answer, err := http.Post("http://"+api+"/v1/data/"+configured.Path, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		var decision struct {
			Result struct {
				Allowed bool `json:"allowed"`
			} `json:"result"`
		}
		if err := json.NewDecoder(answer.Body).Decode(&decision); err != nil {
			t.Fatal(err)
		}
		return decision.Result.Allowed
	}
	if !allows(toModel) || allows(toPlain) {
		t.Errorf("an autonomous Agent may call its model: %v, and no other Agent: %v", allows(toModel), !allows(toPlain))
	}

	// A changed ConfigMap takes effect without a restart of OPA, even if OPA could not load the ConfigMap's previous
	// content.
	grants := data["kaos"].(map[string]any)["grants"].(map[string]any)
	grants["kaos://agent/team/watcher"] = []any{"kaos://agent/team/plain"}
	policy.write(content())
	until("the new data count", func() bool { return allows(toPlain) && !allows(toModel) })
	broken := content()
	broken["data.json"] = "{"
	policy.write(broken)
	if !allows(toPlain) || allows(toModel) {
		t.Error("broken data change the decisions")
	}
	delete(grants, "kaos://agent/team/watcher")
	policy.write(content())
	until("the withdrawn grant counts", func() bool { return !allows(toPlain) })
}
