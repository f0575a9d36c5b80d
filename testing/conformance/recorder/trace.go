// Package recorder asks client-go itself: it runs the scripts of traces against it, and makes new ones.
package recorder

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"sort"
)

// m is a JSON object: a step, a config, an answer.
type m = map[string]any

// Trace is a recorded case.
type Trace struct {
	Area   string   `json:"area"`
	Name   string   `json:"name"`
	Seed   int64    `json:"seed"`
	About  string   `json:"about"`
	Needs  []string `json:"needs,omitempty"`
	Config m        `json:"config"`
	Steps  []m      `json:"steps"`
}

// subject is client-go's side of one area. It must be used inside a synctest bubble.
type subject interface {
	// do makes one step and answers it.
	do(step m) m
	// end lets all goroutines of the bubble end.
	end()
}

// area builds subjects and invents scripts.
type area struct {
	build func(config m) subject
	// invent chooses a config and gives a function that chooses the next step, nil at the end. The answer to
	// the step before is passed in.
	invent func(r *rand.Rand) (config m, needs []string, next func(last m) m)
}

func str(step m, field string) string { s, _ := step[field].(string); return s }
func yes(step m, field string) bool   { b, _ := step[field].(bool); return b }
func list(step m, field string) []any { l, _ := step[field].([]any); return l }
func object(step m, field string) m   { o, _ := step[field].(m); return o }
func has(step m, field string) bool   { _, ok := step[field]; return ok }
func number(step m, field string) int64 {
	switch n := step[field].(type) {
	case float64:
		return int64(n)
	case json.Number:
		i, _ := n.Int64()
		return i
	case int64:
		return n
	case int:
		return int64(n)
	}
	return 0
}

func float(step m, field string) float64 {
	switch n := step[field].(type) {
	case float64:
		return n
	case json.Number:
		f, _ := n.Float64()
		return f
	case int:
		return float64(n)
	}
	return 0
}

// plain gives a value the form it has after being read from JSON, so that values can be compared.
func plain(value any) any {
	text, err := json.Marshal(value)
	if err != nil {
		panic(err)
	}
	var back any
	decode(text, &back)
	return back
}

// decode keeps whole numbers whole, however large they are.
func decode(text []byte, into any) {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	if err := decoder.Decode(into); err != nil {
		panic(err)
	}
}

func load(folder string) []*Trace {
	files, err := filepath.Glob(filepath.Join(folder, "*", "*.json"))
	if err != nil {
		panic(err)
	}
	sort.Strings(files)
	var traces []*Trace
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			panic(err)
		}
		trace := &Trace{}
		decode(text, trace)
		traces = append(traces, trace)
	}
	return traces
}

func (t *Trace) save(folder string) {
	if err := os.MkdirAll(filepath.Join(folder, t.Area), 0o755); err != nil {
		panic(err)
	}
	file, err := os.Create(filepath.Join(folder, t.Area, t.Name+".json"))
	if err != nil {
		panic(err)
	}
	defer file.Close()
	out := bufio.NewWriter(file)
	defer out.Flush()
	head := *t
	head.Steps = nil
	text, _ := json.Marshal(head)
	fmt.Fprintf(out, "%s[\n", text[:len(text)-len("null}")])
	for i, step := range t.Steps {
		line, err := json.Marshal(step)
		if err != nil {
			panic(err)
		}
		comma := ","
		if i == len(t.Steps)-1 {
			comma = ""
		}
		fmt.Fprintf(out, "%s%s\n", line, comma)
	}
	fmt.Fprint(out, "]}\n")
}
