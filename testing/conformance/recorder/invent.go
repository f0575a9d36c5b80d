package recorder

import (
	"fmt"
	"math/rand"
	"sort"
)

// world is what the scripted server would have, if it were one.
type world struct {
	r       *rand.Rand
	objects map[string]m
	version int
	uid     int
	// Changes that the client was not told of yet.
	missed []any
	poison bool
}

func (w *world) fresh(key string, old m) m {
	w.version++
	as := m{"key": key, "version": fmt.Sprint(w.version)}
	if old != nil {
		as["uid"] = old["uid"]
	} else {
		w.uid++
		as["uid"] = fmt.Sprint("u", w.uid)
	}
	if w.poison && w.r.Intn(4) == 0 {
		as["note"] = []string{"poison", "plain"}[w.r.Intn(2)]
	}
	return as
}

// change changes something and notes the event.
func (w *world) change() {
	key := []string{"app/a", "app/b", "kube/c", "kube/d", "ns/e", "ns/f", "cluster-0", "cluster-1"}[w.r.Intn(8)]
	old, ok := w.objects[key]
	switch {
	case !ok:
		w.objects[key] = w.fresh(key, nil)
		w.missed = append(w.missed, m{"type": "ADDED", "object": w.objects[key]})
	case w.r.Intn(3) == 0:
		delete(w.objects, key)
		w.missed = append(w.missed, m{"type": "DELETED", "object": w.fresh(key, old)})
	default:
		w.objects[key] = w.fresh(key, old)
		w.missed = append(w.missed, m{"type": "MODIFIED", "object": w.objects[key]})
	}
}

func (w *world) odd() m {
	key := []string{"app/a", "app/b", "kube/c", "ns/e", "cluster-0"}[w.r.Intn(5)]
	as := m{"key": key, "version": fmt.Sprint(1 + w.r.Intn(w.version+5)), "uid": fmt.Sprint("u", w.r.Intn(9))}
	return m{"type": []string{"ADDED", "MODIFIED", "DELETED"}[w.r.Intn(3)], "object": as}
}

func (w *world) list() []any {
	var keys []string
	for key := range w.objects {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	if w.r.Intn(2) == 0 {
		w.r.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	}
	all := []any{}
	for _, key := range keys {
		// A list that the transform refuses is another story.
		if one := w.objects[key]; str(one, "note") == "poison" {
			delete(one, "note")
		}
		all = append(all, w.objects[key])
	}
	return all
}

func inventError(r *rand.Rand, event bool) m {
	all := []m{
		{"code": 410, "reason": "Expired"},
		{"code": 410, "reason": "Gone"},
		{"code": 429, "reason": "TooManyRequests"},
		{"code": 500, "reason": "InternalError"},
		{"code": 503, "reason": "ServiceUnavailable"},
		{"code": 403, "reason": "Forbidden"},
		{"code": 504, "reason": "Timeout", "cause": "ResourceVersionTooLarge"},
		{"code": 422, "reason": "Invalid"},
		{"code": 504, "reason": "Timeout"},
		{"code": 401, "reason": "Unauthorized"},
		{"code": 404, "reason": "NotFound"},
		{"transport": "connection_refused"},
	}
	if event {
		all = all[:11]
	}
	return all[r.Intn(len(all))]
}

func inventInformer(queue string) func(r *rand.Rand) (m, []string, func(m) m) {
	return func(r *rand.Rand) (m, []string, func(m) m) {
		config := m{"watch_list": r.Intn(2) == 0, "resync_ns": []int64{0, 0, 10_000_000_000, 30_000_000_000}[r.Intn(4)]}
		if queue != "" {
			config["queue"] = queue
		}
		w := &world{r: r, objects: map[string]m{}, version: 100}
		if r.Intn(5) == 0 {
			config["transform"] = "mark"
			w.poison = true
		}
		resyncs := config["resync_ns"].(int64) != 0
		pauses := !resyncs && !yes(config, "watch_list") && r.Intn(2) == 0
		odd, oddLists := r.Intn(4) == 0, r.Intn(6) == 0
		// Of so many steps with a stream one closes it; at times most do, one behind the other.
		calm := []int{14, 14, 14, 3}[r.Intn(4)]
		needs := []string{}
		for need, on := range map[string]bool{
			"watch_list": yes(config, "watch_list"), "resync": resyncs, "pause": pauses, "odd_events": odd,
			"odd_lists": oddLists, "transform": w.poison,
		} {
			if on {
				needs = append(needs, need)
			}
		}
		sort.Strings(needs)
		for range r.Intn(8) {
			w.change()
		}
		handlers, paused := []string{}, map[string]bool{}
		named, made, steps := 0, 0, 30+r.Intn(50)
		// How far the answer to a request has come: pages of a list, or initial events of a watch list.
		var rest []any
		listing := false
		listVersion := ""
		streaming, short := false, false
		addHandler := func() m {
			named++
			name := fmt.Sprint("h", named)
			handlers = append(handlers, name)
			step := m{"op": "add_handler", "handler": name}
			if r.Intn(2) == 0 {
				step["resync_ns"] = []int64{0, 500_000_000, 3_000_000_000, 10_000_000_000, 25_000_000_000, 61_000_000_000}[r.Intn(6)]
			}
			return step
		}
		next := func(last m) m {
			made++
			switch {
			case made == 1:
				return addHandler()
			case made == 2 && r.Intn(2) == 0:
				return addHandler()
			case str(last, "state") == "new":
				return m{"op": "start"}
			case str(last, "state") == "stopped":
				switch r.Intn(3) {
				case 0:
					return m{"op": "check_store"}
				case 1:
					named++
					return m{"op": "add_handler", "handler": fmt.Sprint("h", named)}
				}
				return nil
			case made > steps && str(last, "state") == "stream":
				return m{"op": "stop"}
			}
			for _, request := range list(last, "requests") {
				request := request.(m)
				streaming = yes(request, "send_initial_events")
				if str(request, "kind") == "list" && str(request, "continue") == "" {
					listing = false
				}
			}
			short = short && str(last, "state") == "idle"
			switch n := r.Intn(24); {
			case n == 0:
				return m{"op": "check_store"}
			case n == 1 && len(handlers) < 4:
				return addHandler()
			case n == 2 && len(handlers) > 1:
				at := r.Intn(len(handlers))
				name := handlers[at]
				if paused[name] {
					break
				}
				handlers = append(handlers[:at:at], handlers[at+1:]...)
				return m{"op": "remove_handler", "handler": name}
			case n == 3 && pauses && len(handlers) > 0:
				name := handlers[r.Intn(len(handlers))]
				op := "pause_handler"
				if paused[name] {
					op = "resume_handler"
				}
				paused[name] = !paused[name]
				return m{"op": op, "handler": name}
			case n < 6 && str(last, "state") != "idle":
				return m{"op": "advance", "by_ns": []int64{700_000_000, 2_000_000_000, 7_300_000_000, 31_000_000_000}[r.Intn(4)]}
			}
			switch str(last, "state") {
			case "list":
				if r.Intn(4) == 0 {
					return m{"op": "list_error", "error": inventError(r, false)}
				}
				if !listing {
					for range r.Intn(4) {
						w.change()
					}
					rest, listing, listVersion = w.list(), true, fmt.Sprint(w.version)
					w.missed = nil
					if oddLists && len(rest) > 0 && r.Intn(2) == 0 {
						again := rest[r.Intn(len(rest))].(m)
						rest = append(rest, m{"key": again["key"], "version": fmt.Sprint(w.version), "uid": again["uid"]})
					}
				}
				items, step := rest, m{"op": "list_ok", "version": listVersion}
				rest = nil
				if len(items) > 1 && r.Intn(5) == 0 {
					items, rest = items[:len(items)/2], items[len(items)/2:]
					step["continue"] = fmt.Sprint("token-", len(rest))
				} else {
					listing = false
				}
				step["items"] = items
				return step
			case "watch":
				if r.Intn(5) == 0 {
					return m{"op": "watch_error", "error": inventError(r, false)}
				}
				if streaming {
					rest, w.missed = w.list(), nil
				}
				return m{"op": "watch_ok"}
			case "idle":
				// Nothing happens yet; but it might, if it came twice.
				if short = !short && r.Intn(4) == 0; short {
					return m{"op": "advance", "by_ns": int64(700_000_000)}
				}
				for range r.Intn(4) {
					w.change()
				}
				return m{"op": "advance", "by_ns": int64(61_000_000_000)}
			case "stream":
				switch n := r.Intn(calm); {
				case n == 0:
					return m{"op": "watch_close"}
				case n == 1:
					return m{"op": "events", "events": []any{m{"type": "ERROR", "error": inventError(r, true)}}}
				}
				if streaming {
					if len(rest) > 0 {
						events := []any{}
						for range 1 + r.Intn(4) {
							if len(rest) > 0 {
								events = append(events, m{"type": "ADDED", "object": rest[0]})
								rest = rest[1:]
							}
						}
						return m{"op": "events", "events": events}
					}
					if r.Intn(3) == 0 {
						w.change()
						events := w.missed
						w.missed = nil
						// An object of a list that the transform refuses is another story, and is kept here.
						for _, event := range events {
							delete(object(event.(m), "object"), "note")
						}
						return m{"op": "events", "events": events}
					}
					streaming = false
					return m{"op": "events", "events": []any{m{"type": "BOOKMARK", "version": fmt.Sprint(w.version), "initial_events_end": true}}}
				}
				if r.Intn(6) == 0 && len(w.missed) == 0 {
					w.version += r.Intn(10)
					return m{"op": "events", "events": []any{m{"type": "BOOKMARK", "version": fmt.Sprint(w.version)}}}
				}
				if odd && r.Intn(3) == 0 {
					return m{"op": "events", "events": []any{w.odd()}}
				}
				for range 1 + r.Intn(4) {
					w.change()
				}
				events := w.missed
				w.missed = nil
				if r.Intn(12) == 0 {
					events = append(events, m{"type": "ERROR", "error": inventError(r, true)})
				}
				return m{"op": "events", "events": events}
			}
			panic("unknown state " + str(last, "state"))
		}
		return config, needs, next
	}
}
