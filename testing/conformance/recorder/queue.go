package recorder

import (
	"math/rand"
	"sort"
	"sync"
	"time"

	"testing/synctest"

	"k8s.io/client-go/util/workqueue"
)

// queues is the subject of the areas queue, delaying and ratelimitqueue.
type queues struct {
	plain    workqueue.TypedInterface[string]
	delaying workqueue.TypedDelayingInterface[string]
	limited  workqueue.TypedRateLimitingInterface[string]
	limiter  *spoken
	start    time.Time

	mu      sync.Mutex
	waiting int
	woken   []m
	drain   string
	// Due times of delayed adds, by the rule that the earliest wins: the reference does not show them.
	due map[string]time.Time
	// All keys that there were.
	used map[string]bool
}

// spoken remembers what the limiter said last.
type spoken struct {
	workqueue.TypedRateLimiter[string]
	last time.Duration
}

func (t *spoken) When(key string) time.Duration {
	t.last = t.TypedRateLimiter.When(key)
	return t.last
}

func buildQueue(area string) func(config m) subject {
	return func(config m) subject {
		q := &queues{start: time.Now(), due: map[string]time.Time{}, used: map[string]bool{}}
		switch area {
		case "queue":
			q.plain = workqueue.NewTyped[string]()
		case "delaying":
			q.delaying = workqueue.NewTypedDelayingQueue[string]()
			q.plain = q.delaying
		default:
			q.limiter = &spoken{TypedRateLimiter: limiterOf(object(config, "limiter"))}
			q.limited = workqueue.NewTypedRateLimitingQueue[string](q.limiter)
			q.delaying = q.limited
			q.plain = q.limited
		}
		return q
	}
}

func (q *queues) do(step m) m {
	answer := m{}
	key := str(step, "key")
	q.used[key] = true
	switch str(step, "op") {
	case "add":
		q.plain.Add(key)
	case "get":
		if q.plain.Len() == 0 && !q.plain.ShuttingDown() {
			answer["would_block"] = true
		} else if got, down := q.plain.Get(); down {
			answer["shutdown"] = true
		} else {
			answer["key"] = got
		}
	case "get_all":
		groups := []any{}
		for q.plain.Len() > 0 {
			got, _ := q.plain.Get()
			groups = append(groups, []any{got})
		}
		answer["groups"] = groups
	case "get_wait":
		q.waiting++
		go func() {
			got, down := q.plain.Get()
			q.mu.Lock()
			defer q.mu.Unlock()
			q.waiting--
			if down {
				q.woken = append(q.woken, m{"shutdown": true})
			} else {
				q.woken = append(q.woken, m{"key": got})
			}
		}()
	case "done":
		q.plain.Done(key)
	case "shut_down":
		q.due = map[string]time.Time{}
		q.plain.ShutDown()
	case "shut_down_with_drain":
		q.due = map[string]time.Time{}
		q.drain = "waiting"
		go func() {
			q.plain.ShutDownWithDrain()
			q.mu.Lock()
			defer q.mu.Unlock()
			q.drain = "returned"
		}()
	case "add_after":
		delay := time.Duration(number(step, "delay_ns"))
		q.expect(key, delay)
		q.delaying.AddAfter(key, delay)
	case "add_rate_limited":
		q.limited.AddRateLimited(key)
		q.expect(key, q.limiter.last)
		answer["delay_ns"] = q.limiter.last.Nanoseconds()
		answer["requeues"] = q.limited.NumRequeues(key)
	case "forget":
		q.limited.Forget(key)
		answer["requeues"] = q.limited.NumRequeues(key)
	case "num_requeues":
		answer["requeues"] = q.limited.NumRequeues(key)
	case "advance":
		time.Sleep(time.Duration(number(step, "by_ns")))
		if due := q.takeDue(); len(due) > 0 {
			answer["due"] = due
		}
	default:
		panic("unknown operation " + str(step, "op"))
	}
	synctest.Wait()
	q.mu.Lock()
	defer q.mu.Unlock()
	answer["len"] = q.plain.Len()
	answer["shutting_down"] = q.plain.ShuttingDown()
	if q.waiting > 0 {
		answer["waiting"] = q.waiting
	}
	if len(q.woken) > 0 {
		sort.Slice(q.woken, func(i, j int) bool { return str(q.woken[i], "key") < str(q.woken[j], "key") })
		answer["woken"] = q.woken
		q.woken = nil
	}
	if q.drain != "" {
		answer["drain"] = q.drain
	}
	if q.drain == "returned" {
		q.drain = ""
	}
	return answer
}

func (q *queues) expect(key string, delay time.Duration) {
	if q.plain.ShuttingDown() || delay <= 0 {
		return
	}
	at := time.Now().Add(delay)
	if before, ok := q.due[key]; !ok || at.Before(before) {
		q.due[key] = at
	}
}

func (q *queues) takeDue() []any {
	now := time.Now()
	at := map[int64][]string{}
	for key, due := range q.due {
		if !due.After(now) {
			at[due.Sub(q.start).Nanoseconds()] = append(at[due.Sub(q.start).Nanoseconds()], key)
			delete(q.due, key)
		}
	}
	var instants []int64
	for instant := range at {
		instants = append(instants, instant)
	}
	sort.Slice(instants, func(i, j int) bool { return instants[i] < instants[j] })
	var told []any
	for _, instant := range instants {
		sort.Strings(at[instant])
		told = append(told, m{"at_ns": instant, "keys": at[instant]})
	}
	return told
}

func (q *queues) end() {
	q.plain.ShutDown()
	// A delaying queue that was shut down before hears no second shut down, and a drain of it waits on.
	for key := range q.used {
		q.plain.Done(key)
	}
	time.Sleep(time.Minute)
}

// inventQueue invents scripts in which no two times coincide, so that every order is exact.
func inventQueue(area string) func(r *rand.Rand) (m, []string, func(m) m) {
	return func(r *rand.Rand) (m, []string, func(m) m) {
		config := m{}
		if area == "ratelimitqueue" {
			config["limiter"] = inventLimiter(r, 0, true)
		}
		keys := []string{"a/1", "a/2", "b/1", "c", "d/4", "e/5"}[:2+r.Intn(5)]
		steps := 30 + r.Intn(60)
		held := map[string]bool{}
		var last m
		waits, drains := 0, false
		made := 0
		// Times are whole milliseconds, and each delayed add has its own remainder of microseconds.
		next := func(answer m) m {
			if answer != nil {
				if key := str(answer, "key"); key != "" {
					held[key] = true
				}
				for _, group := range list(answer, "groups") {
					held[group.([]any)[0].(string)] = true
				}
				if woken, ok := answer["woken"].([]m); ok {
					for _, one := range woken {
						if str(one, "key") != "" {
							held[str(one, "key")] = true
						}
					}
				}
				if str(last, "op") == "done" {
					delete(held, str(last, "key"))
				}
				waits = int(number(answer, "waiting"))
				drains = str(answer, "drain") == "waiting"
			}
			if made++; made > steps {
				return nil
			}
			key := keys[r.Intn(len(keys))]
			for {
				var step m
				switch n := r.Intn(100); {
				case n < 25:
					step = m{"op": "add", "key": key}
				case n < 42:
					step = m{"op": "get"}
				case n < 65:
					if len(held) == 0 {
						continue
					}
					var all []string
					for key := range held {
						all = append(all, key)
					}
					sort.Strings(all)
					step = m{"op": "done", "key": all[r.Intn(len(all))]}
				case n < 68:
					if waits > 3 {
						continue
					}
					step = m{"op": "get_wait"}
				case n == 68:
					if r.Intn(4) != 0 {
						continue
					}
					step = m{"op": "shut_down"}
				case n == 69:
					if drains || r.Intn(4) != 0 {
						continue
					}
					step = m{"op": "shut_down_with_drain"}
				case n < 72 && area != "queue":
					step = m{"op": "get_all"}
				case n < 82 && area != "queue":
					delay := int64(r.Intn(3000))*1_000_000 + int64(made)*1000
					if r.Intn(6) == 0 {
						delay = -int64(r.Intn(2)) * 1_000_000
					}
					step = m{"op": "add_after", "key": key, "delay_ns": delay}
				case n < 92 && area != "queue":
					step = m{"op": "advance", "by_ns": int64(1+r.Intn(1500)) * 1_000_000}
				case n < 97 && area == "ratelimitqueue":
					step = m{"op": "add_rate_limited", "key": key}
				case n < 99 && area == "ratelimitqueue":
					step = m{"op": "forget", "key": key}
				case area == "ratelimitqueue":
					step = m{"op": "num_requeues", "key": key}
				default:
					continue
				}
				last = step
				return step
			}
		}
		return config, nil, next
	}
}
