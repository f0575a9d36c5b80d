package recorder

import (
	"errors"
	"fmt"
	"math/rand"
	"sort"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// known is the store beside the queue. It lists its keys in ascending order.
type known map[string]any

func (k known) ListKeys() []string {
	keys := []string{}
	for key := range k {
		keys = append(keys, key)
	}
	sort.Strings(keys)
	return keys
}

func (k known) GetByKey(key string) (any, bool, error) {
	obj, ok := k[key]
	return obj, ok, nil
}

type fifos struct {
	queue  cache.Queue
	known  known
	closed bool
	count  func() int
}

type nameless struct{}

func thing(as m) any { return itemOf(as) }

func told(obj any) m {
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		answer := m{"key": tombstone.Key, "tombstone": true}
		if one, ok := tombstone.Obj.(*item); ok && one != nil {
			answer["version"] = str(one.as, "version")
			if note := str(one.as, "note"); note != "" {
				answer["note"] = note
			}
		}
		return answer
	}
	as := obj.(*item).as
	answer := m{"key": str(as, "key"), "version": str(as, "version")}
	if note := str(as, "note"); note != "" {
		answer["note"] = note
	}
	return answer
}

func buildFifo(config m) subject {
	f := &fifos{known: known{}}
	var transform cache.TransformFunc
	if str(config, "transform") == "append" {
		transform = func(obj any) (any, error) {
			as := m{}
			for field, value := range obj.(*item).as {
				as[field] = value
			}
			as["note"] = str(as, "note") + "+"
			return itemOf(as), nil
		}
	}
	var lookup cache.KeyListerGetter
	if yes(config, "known_objects") {
		lookup = f.known
	}
	key := func(obj any) (string, error) {
		one, ok := obj.(*item)
		if !ok {
			return "", errors.New("no key")
		}
		return cache.MetaNamespaceKeyFunc(one)
	}
	switch str(config, "queue") {
	case "delta":
		queue := cache.NewDeltaFIFOWithOptions(cache.DeltaFIFOOptions{
			KeyFunction: key, KnownObjects: lookup, EmitDeltaTypeReplaced: yes(config, "emit_replaced"), Transformer: transform,
		})
		f.queue = queue
	default:
		atomic := str(config, "queue") == "real_atomic"
		f.queue = cache.NewRealFIFOWithOptions(cache.RealFIFOOptions{
			KeyFunction: key, KnownObjects: lookup, Transformer: transform,
			AtomicEvents: atomic, UnlockWhileProcessing: atomic, EmitDeltaTypeBookmark: atomic,
		})
	}
	f.count = func() int { return pending(f.queue) }
	return f
}

var errProcess = errors.New("as the script says")

func (f *fifos) do(step m) m {
	answer := m{}
	var given any = nameless{}
	if !yes(step, "no_key") {
		given = any(itemOf(object(step, "object")))
	}
	var err error
	switch op := str(step, "op"); op {
	case "add":
		err = f.queue.Add(given)
	case "update":
		err = f.queue.Update(given)
	case "delete":
		if yes(step, "tombstone") {
			one := given.(*item)
			tombstone := cache.DeletedFinalStateUnknown{Key: str(one.as, "key")}
			if one.ResourceVersion != "" {
				tombstone.Obj = one
			}
			given = tombstone
		}
		err = f.queue.Delete(given)
	case "replace":
		all := []any{}
		for _, as := range list(step, "objects") {
			all = append(all, itemOf(as.(m)))
		}
		if yes(step, "no_key") {
			all = append(all, nameless{})
		}
		err = f.queue.Replace(all, str(step, "version"))
	case "resync":
		err = f.queue.Resync()
	case "bookmark":
		err = f.queue.(interface{ Bookmark(string) error }).Bookmark(str(step, "version"))
	case "close":
		f.queue.Close()
		f.closed = true
	case "known_set":
		f.known[str(object(step, "object"), "key")] = itemOf(object(step, "object"))
	case "known_remove":
		delete(f.known, str(step, "key"))
	case "pop", "pop_batch":
		f.pop(op == "pop_batch", yes(step, "fail"), answer)
	default:
		panic("unknown operation " + op)
	}
	if err != nil {
		answer["error"] = "key"
	}
	answer["pending"] = f.count()
	answer["synced"] = f.queue.HasSynced()
	return answer
}

func (f *fifos) pop(batch, fail bool, answer m) {
	if f.count() == 0 && !f.closed {
		answer["would_block"] = true
		return
	}
	process := func(deltas []cache.Delta, initial bool) error {
		all := []any{}
		for _, delta := range deltas {
			one := m{"type": string(delta.Type)}
			switch info := delta.Object.(type) {
			case cache.ReplacedAllInfo:
				one["version"] = info.ResourceVersion
				objects := []any{}
				for _, obj := range info.Objects {
					objects = append(objects, told(obj))
				}
				if len(objects) > 0 {
					one["objects"] = objects
				}
			case cache.BookmarkInfo:
				one["version"] = info.ResourceVersion
			case cache.SyncAllInfo:
			default:
				for field, value := range told(delta.Object) {
					one[field] = value
				}
			}
			all = append(all, one)
		}
		answer["deltas"], answer["initial"] = all, initial
		if fail {
			return errProcess
		}
		for _, delta := range deltas {
			switch obj := delta.Object.(type) {
			case cache.DeletedFinalStateUnknown:
				delete(f.known, obj.Key)
			case *item:
				if delta.Type == cache.Deleted {
					delete(f.known, str(obj.as, "key"))
				} else {
					f.known[str(obj.as, "key")] = obj
				}
			}
		}
		return nil
	}
	single := func(obj any, initial bool) error {
		if batch {
			answer["batched"] = false
		}
		return process(obj.(cache.Deltas), initial)
	}
	var err error
	if batch {
		err = f.queue.(cache.QueueWithBatch).PopBatch(func(deltas []cache.Delta, initial bool) error {
			answer["batched"] = true
			return process(deltas, initial)
		}, single)
	} else {
		_, err = f.queue.Pop(single)
	}
	switch {
	case errors.Is(err, cache.ErrFIFOClosed):
		answer["error"] = "closed"
	case err != nil:
		answer["error"] = "process"
	}
}

func (f *fifos) end() {}

var _ metav1.Object = &item{}

func inventFifo(r *rand.Rand) (m, []string, func(m) m) {
	queue := []string{"delta", "delta", "delta", "real", "real", "real_atomic"}[r.Intn(6)]
	config := m{"queue": queue, "known_objects": queue == "real" || queue == "delta" && r.Intn(3) > 0}
	if queue == "delta" {
		config["emit_replaced"] = r.Intn(2) == 0
	}
	if r.Intn(4) == 0 {
		config["transform"] = "append"
	}
	version, made, steps := 100, 0, 40+r.Intn(80)
	keys := []string{"a/1", "a/2", "b/1", "c", "b/2", "d"}[:2+r.Intn(5)]
	one := func(key string) m {
		version++
		as := m{"key": key, "version": fmt.Sprint(version)}
		if r.Intn(3) == 0 {
			as["note"] = "n"
		}
		return as
	}
	noKeys := r.Intn(5) == 0
	return config, nil, func(m) m {
		if made++; made > steps {
			return nil
		}
		key := keys[r.Intn(len(keys))]
		nameless := noKeys && r.Intn(8) == 0
		switch n := r.Intn(40); {
		case n < 10:
			op := []string{"add", "update", "update"}[r.Intn(3)]
			if nameless {
				return m{"op": op, "no_key": true}
			}
			return m{"op": op, "object": one(key)}
		case n < 15:
			if nameless {
				return m{"op": "delete", "no_key": true}
			}
			step := m{"op": "delete", "object": one(key)}
			if r.Intn(3) == 0 {
				step["tombstone"] = true
				if r.Intn(3) == 0 {
					step["object"] = m{"key": key}
				}
			}
			return step
		case n < 18:
			objects := []any{}
			for _, at := range r.Perm(len(keys))[:r.Intn(len(keys)+1)] {
				objects = append(objects, one(keys[at]))
				if r.Intn(8) == 0 {
					objects = append(objects, one(keys[at]))
				}
			}
			step := m{"op": "replace", "objects": objects, "version": fmt.Sprint(version)}
			if nameless && queue != "real_atomic" {
				step["no_key"] = true
			}
			return step
		case n < 20:
			return m{"op": "resync"}
		case n == 20:
			if queue == "real_atomic" {
				return m{"op": "bookmark", "version": fmt.Sprint(version + 7)}
			}
			return m{"op": "known_set", "object": one(key)}
		case n == 21:
			return m{"op": "known_remove", "key": key}
		case n == 22 && r.Intn(5) == 0:
			return m{"op": "close"}
		case n < 27 && queue != "delta":
			step := m{"op": "pop_batch"}
			if r.Intn(6) == 0 {
				step["fail"] = true
			}
			return step
		default:
			step := m{"op": "pop"}
			if r.Intn(8) == 0 {
				step["fail"] = true
			}
			return step
		}
	}
}
