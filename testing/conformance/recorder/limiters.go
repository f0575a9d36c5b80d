package recorder

import (
	"math/rand"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
)

type limiters struct {
	limiter workqueue.TypedRateLimiter[string]
	backoff *flowcontrol.Backoff
}

func limiterOf(description m) workqueue.TypedRateLimiter[string] {
	nanos := func(field string) time.Duration { return time.Duration(number(description, field)) }
	switch str(description, "type") {
	case "exponential":
		return workqueue.NewTypedItemExponentialFailureRateLimiter[string](nanos("base_ns"), nanos("max_ns"))
	case "fast_slow":
		attempts := int(number(description, "max_fast_attempts"))
		return workqueue.NewTypedItemFastSlowRateLimiter[string](nanos("fast_ns"), nanos("slow_ns"), attempts)
	case "bucket":
		limit := rate.NewLimiter(rate.Limit(float(description, "qps")), int(number(description, "burst")))
		return &workqueue.TypedBucketRateLimiter[string]{Limiter: limit}
	case "max_of":
		var all []workqueue.TypedRateLimiter[string]
		for _, one := range list(description, "limiters") {
			all = append(all, limiterOf(one.(m)))
		}
		return workqueue.NewTypedMaxOfRateLimiter(all...)
	case "with_max_wait":
		return workqueue.NewTypedWithMaxWaitRateLimiter(limiterOf(object(description, "limiter")), nanos("max_ns"))
	case "default_controller":
		return workqueue.DefaultTypedControllerRateLimiter[string]()
	case "default_item_based":
		return workqueue.DefaultTypedItemBasedRateLimiter[string]()
	}
	panic("unknown limiter " + str(description, "type"))
}

func buildLimiter(config m) subject {
	if backoff := object(config, "backoff"); backoff != nil {
		initial, max := time.Duration(number(backoff, "initial_ns")), time.Duration(number(backoff, "max_ns"))
		return &limiters{backoff: flowcontrol.NewBackOffWithJitter(initial, max, 0)}
	}
	return &limiters{limiter: limiterOf(object(config, "limiter"))}
}

func (l *limiters) do(step m) m {
	answer := m{}
	key := str(step, "key")
	event := time.Now().Add(-time.Duration(number(step, "event_ago_ns")))
	times := 1
	if has(step, "times") {
		times = int(number(step, "times"))
	}
	switch str(step, "op") {
	case "when":
		delays := []any{}
		for range times {
			delays = append(delays, l.limiter.When(key).Nanoseconds())
		}
		answer["delays_ns"] = delays
		answer["requeues"] = l.limiter.NumRequeues(key)
	case "when_many":
		for range times {
			answer["delay_ns"] = l.limiter.When(key).Nanoseconds()
		}
		answer["requeues"] = l.limiter.NumRequeues(key)
	case "forget":
		l.limiter.Forget(key)
		answer["requeues"] = l.limiter.NumRequeues(key)
	case "num_requeues":
		answer["requeues"] = l.limiter.NumRequeues(key)
	case "advance":
		time.Sleep(time.Duration(number(step, "by_ns")))
	case "next":
		l.backoff.Next(key, event)
		answer["delay_ns"] = l.backoff.Get(key).Nanoseconds()
	case "get":
		answer["delay_ns"] = l.backoff.Get(key).Nanoseconds()
	case "in_backoff_since":
		answer["in_backoff"] = l.backoff.IsInBackOffSince(key, event)
	case "in_backoff_since_update":
		answer["in_backoff"] = l.backoff.IsInBackOffSinceUpdate(key, event)
	case "reset":
		l.backoff.Reset(key)
	case "delete_entry":
		l.backoff.DeleteEntry(key)
	case "gc":
		l.backoff.GC()
	default:
		panic("unknown operation " + str(step, "op"))
	}
	return answer
}

func (l *limiters) end() {}

// inventLimiter invents a description; in a queue, one whose times never coincide with others.
func inventLimiter(r *rand.Rand, depth int, inQueue bool) m {
	odd := func() int64 { return int64(1+r.Intn(400))*1_000_000 + int64(r.Intn(1000)) }
	kinds := 7
	if depth > 1 {
		kinds = 3
	}
	switch r.Intn(kinds) {
	case 0:
		base := odd()
		if !inQueue && r.Intn(4) == 0 {
			base = int64(1 + r.Intn(5))
		}
		return m{"type": "exponential", "base_ns": base, "max_ns": base * int64(r.Intn(5000))}
	case 1:
		return m{"type": "fast_slow", "fast_ns": odd(), "slow_ns": odd() * 7, "max_fast_attempts": r.Intn(5)}
	case 2:
		return m{"type": "bucket", "qps": []float64{0.3, 1, 2.5, 10, 100}[r.Intn(5)], "burst": 1 + r.Intn(20), "tolerance_ns": 1000}
	case 3, 4:
		limiters := []any{}
		for range 1 + r.Intn(3) {
			limiters = append(limiters, inventLimiter(r, depth+1, inQueue))
		}
		return m{"type": "max_of", "limiters": limiters}
	case 5:
		return m{"type": "with_max_wait", "max_ns": odd() * 3, "limiter": inventLimiter(r, depth+1, inQueue)}
	default:
		if r.Intn(2) == 0 {
			return m{"type": "default_item_based"}
		}
		return m{"type": "default_controller", "tolerance_ns": 1000}
	}
}

func inventLimiters(r *rand.Rand) (m, []string, func(m) m) {
	made, steps := 0, 40+r.Intn(60)
	key := func() string { return []string{"a", "b", "c/d", ""}[r.Intn(4)] }
	if r.Intn(3) == 0 {
		initial := int64(1+r.Intn(2000)) * 1_000_000
		max := initial * int64(1+r.Intn(20))
		return m{"backoff": m{"initial_ns": initial, "max_ns": max}}, nil, func(m) m {
			if made++; made > steps {
				return nil
			}
			ago := int64(r.Intn(5))*max/2 - max/2
			if r.Intn(2) == 0 {
				ago = int64(r.Intn(int(3*max/1000+1))) * 1000
			}
			if r.Intn(6) == 0 {
				ago = 0
			}
			switch r.Intn(12) {
			case 0, 1, 2, 3:
				return m{"op": "next", "key": key(), "event_ago_ns": ago}
			case 4:
				return m{"op": "get", "key": key()}
			case 5, 6:
				return m{"op": "in_backoff_since", "key": key(), "event_ago_ns": ago}
			case 7:
				return m{"op": "in_backoff_since_update", "key": key(), "event_ago_ns": ago}
			case 8:
				return m{"op": []string{"reset", "delete_entry", "gc"}[r.Intn(3)], "key": key()}
			default:
				return m{"op": "advance", "by_ns": []int64{max / 3, initial, 2 * max, 1_000_000}[r.Intn(4)]}
			}
		}
	}
	return m{"limiter": inventLimiter(r, 0, false)}, nil, func(m) m {
		if made++; made > steps {
			return nil
		}
		switch r.Intn(10) {
		case 0, 1, 2, 3:
			return m{"op": "when", "key": key()}
		case 4:
			return m{"op": "when", "key": key(), "times": 1 + r.Intn(30)}
		case 5:
			return m{"op": "when_many", "key": key(), "times": 1 + r.Intn(1200)}
		case 6:
			return m{"op": "forget", "key": key()}
		case 7:
			return m{"op": "num_requeues", "key": key()}
		default:
			return m{"op": "advance", "by_ns": int64(r.Intn(3000)) * 1_000_000}
		}
	}
}
