// Command hostile is a policy that fails in many ways. A Website's title chooses how.
package main

import (
	"crypto/rand"
	"fmt"
	"os"
	"time"

	"website-policy/kaos"
	"website-policy/kaos/policy"
)

func init() { policy.Export(hostile{}) }

func main() {}

type hostile struct{}

func (hostile) Describe() kaos.Descriptor {
	metadata := kaos.Map{"name": "blog", "namespace": "default"}
	sample := kaos.Map{"apiVersion": "example.com/v1", "kind": "Website", "metadata": metadata, "spec": kaos.Map{}}
	return kaos.Descriptor{Name: "hostile", Version: "0.1.0", Claims: []kaos.Claim{{
		Primary: kaos.ResourceType{APIVersion: "example.com/v1", Kind: "Website"},
		Emits:   []kaos.ResourceType{{APIVersion: "v1", Kind: "ConfigMap"}},
		Samples: []kaos.Sample{{Name: "harmless", Object: kaos.Text(sample)}},
	}}}
}

var kept [][]byte

func (hostile) Translate(subject *kaos.Subject, env []kaos.EnvVar) (*kaos.Plan, error) {
	plan := kaos.NewPlan(env)
	switch subject.Get().String("spec", "title") {
	case "panic":
		panic("the kite is gone")
	case "index":
		_ = env[7]
	case "error":
		return nil, fmt.Errorf("the kite is torn")
	case "nothing":
		return nil, nil
	case "exit":
		os.Exit(0)
	case "random":
		_, err := rand.Read(make([]byte, 8))
		return nil, err
	case "deadlock":
		<-make(chan int)
	case "loop":
		for {
			kept = nil
		}
	case "memory":
		for {
			kept = append(kept, make([]byte, 1<<16))
		}
	case "recursion":
		plan.Debug("depth", deep(0))
	case "chatter":
		for range 1000 {
			fmt.Fprintln(os.Stderr, "chatter")
			fmt.Println("chatter")
		}
		panic("after the chatter")
	case "averted":
		averted(plan)
	case "clock":
		begin := time.Now()
		time.Sleep(time.Hour)
		plan.Debug("now", begin.UTC().Format(time.RFC3339))
		plan.Debug("slept", time.Since(begin) >= time.Hour)
	case "goroutines":
		sums := make(chan int)
		for i := range 100 {
			go func() { sums <- i }()
		}
		all := 0
		for range 100 {
			all += <-sums
		}
		plan.Debug("sum", all)
	case "outside":
		_, err := os.ReadFile("/etc/passwd")
		plan.Debug("file", err.Error())
		plan.Debug("environment", len(os.Environ())+len(os.Args))
		read, err := os.Stdin.Read(make([]byte, 1))
		plan.Debug("input", fmt.Sprint(read, " ", err))
	}
	return plan, nil
}

// averted writes texts that begin like the message of a fatal error, but does not fail. Afterwards, newly allocated
// memory must still contain only zeros, and nothing else may write into this memory.
func averted(plan *kaos.Plan) {
	fmt.Fprintln(os.Stderr, "panic averted")
	dirty := 0
	for range 64 {
		fresh := make([]byte, 1<<16)
		fmt.Fprintln(os.Stderr, "fatal error averted")
		for _, one := range fresh {
			if one != 0 {
				dirty++
			}
		}
		kept = append(kept, fresh)
	}
	fmt.Fprintln(os.Stderr, "panic averted again")
	for _, fresh := range kept {
		for _, one := range fresh {
			if one != 0 {
				dirty++
			}
		}
	}
	kept = nil
	plan.Debug("dirty", dirty)
}

func deep(depth int) int {
	if depth < 0 {
		return 0
	}
	return deep(depth+1) + 1
}
