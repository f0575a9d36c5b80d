package recorder

import (
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand"
	"os"
	"reflect"
	"sort"
	"testing"
	"testing/synctest"

	"k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/klog/v2"
)

var (
	traces = flag.String("traces", "../traces", "the traces to replay")
	only   = flag.String("area", "", "the only area to replay or record")
	out    = flag.String("out", "", "the folder to record new traces to")
	seed   = flag.Int64("seed", 1, "the seed of the first new trace")
	count  = flag.Int64("many", 10, "how many new traces to record for each area")
)

var areas = map[string]area{
	"queue":            {buildQueue("queue"), inventQueue("queue")},
	"delaying":         {buildQueue("delaying"), inventQueue("delaying")},
	"ratelimitqueue":   {buildQueue("ratelimitqueue"), inventQueue("ratelimitqueue")},
	"ratelimiters":     {buildLimiter, inventLimiters},
	"store":            {buildStore, inventStore},
	"deltafifo":        {buildFifo, inventFifo},
	"informer":         {buildInformer, inventInformer("")},
	"informer_per_key": {buildInformer, inventInformer("delta")},
}

func TestMain(main *testing.M) {
	flag.Parse()
	klog.SetOutput(io.Discard)
	klog.LogToStderr(false)
	// One of them slows down by the time of the last error, and every bubble has its own time.
	runtime.ErrorHandlers = nil
	os.Exit(main.Run())
}

// TestReplay runs the recorded scripts against client-go again and compares.
func TestReplay(t *testing.T) {
	for _, trace := range load(*traces) {
		area, ok := areas[trace.Area]
		if !ok || *only != "" && *only != trace.Area {
			continue
		}
		t.Run(trace.Name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				subject := area.build(trace.Config)
				defer subject.end()
				for i, step := range trace.Steps {
					expect := normal(object(step, "expect"))
					got := normal(plain(subject.do(step)).(m))
					if !reflect.DeepEqual(expect, got) {
						t.Fatalf("step %d, %v\nexpected %v\ngot      %v", i+1, step, expect, got)
					}
				}
			})
		})
	}
}

// TestRecord invents scripts and records client-go's answers. A trace that a second run answers differently
// is left out.
func TestRecord(t *testing.T) {
	if *out == "" {
		t.Skip("no -out")
	}
	for name, area := range areas {
		if *only != "" && *only != name {
			continue
		}
		for n := *seed; n < *seed+*count; n++ {
			t.Run(fmt.Sprintf("%s-%d", name, n), func(t *testing.T) {
				trace := &Trace{Area: name, Name: fmt.Sprintf("%s-%04d", name, n), Seed: n, About: "Random operations."}
				r := rand.New(rand.NewSource(n))
				synctest.Test(t, func(t *testing.T) {
					config, needs, next := area.invent(r)
					trace.Config, trace.Needs = plain(config).(m), needs
					subject := area.build(trace.Config)
					defer subject.end()
					var answer m
					for step := next(nil); step != nil; step = next(answer) {
						step = plain(step).(m)
						if os.Getenv("TRACE_STEPS") != "" {
							text, _ := json.Marshal(step)
							fmt.Fprintf(os.Stderr, "%s\n", text)
						}
						answer = subject.do(step)
						step["expect"] = plain(answer)
						trace.Steps = append(trace.Steps, step)
					}
				})
				stable := true
				for range 4 {
					synctest.Test(t, func(t *testing.T) {
						subject := area.build(trace.Config)
						defer subject.end()
						for _, step := range trace.Steps {
							if !reflect.DeepEqual(normal(object(step, "expect")), normal(plain(subject.do(step)).(m))) {
								stable = false
							}
						}
					})
				}
				if !stable {
					t.Skip("not the same in every run")
				}
				trace.save(*out)
			})
		}
	}
}

// normal brings an answer to the one form that equal answers have.
func normal(answer m) m {
	clean := m{}
	for field, value := range answer {
		if field == "message" {
			continue
		}
		if groups, ok := value.([]any); ok && field == "groups" {
			flat := []any{}
			for _, group := range groups {
				flat = append(flat, group.([]any)...)
			}
			sort.Slice(flat, func(i, j int) bool { return flat[i].(string) < flat[j].(string) })
			value = flat
		}
		switch value := value.(type) {
		case nil:
			continue
		case bool:
			if !value {
				continue
			}
		case string:
			if value == "" {
				continue
			}
		case json.Number:
			if value == "0" {
				continue
			}
		case []any:
			if len(value) == 0 {
				continue
			}
		}
		clean[field] = value
	}
	return clean
}
