package recorder

import (
	"fmt"
	"maps"
	"math/rand"
	"slices"
	"sort"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// item is an object as the store's traces write it, with what client-go wants to know of it.
type item struct {
	corev1.ConfigMap
	as m
}

func itemOf(as m) *item {
	if as == nil {
		return nil
	}
	namespace, name, found := strings.Cut(str(as, "key"), "/")
	if !found {
		namespace, name = "", namespace
	}
	one := &item{as: as}
	one.ObjectMeta = metav1.ObjectMeta{Namespace: namespace, Name: name, ResourceVersion: str(as, "version")}
	return one
}

type stores struct {
	indexer cache.Indexer
	safe    cache.ThreadSafeStore
}

func indexersOf(described m) cache.Indexers {
	indexers := cache.Indexers{}
	for name, function := range described {
		function := function.(string)
		indexers[name] = func(obj any) ([]string, error) {
			one := obj.(*item)
			switch {
			case function == "namespace":
				return []string{one.Namespace}, nil
			case function == "name":
				return []string{one.Name}, nil
			}
			var values []string
			for _, value := range list(object(one.as, "fields"), strings.TrimPrefix(function, "field:")) {
				values = append(values, value.(string))
			}
			return values, nil
		}
	}
	return indexers
}

func buildStore(config m) subject {
	indexers := indexersOf(object(config, "indexers"))
	if str(config, "level") == "indexer" {
		return &stores{indexer: cache.NewIndexer(cache.DeletionHandlingMetaNamespaceKeyFunc, indexers)}
	}
	return &stores{safe: cache.NewThreadSafeStore(indexers, cache.Indices{})}
}

func (s *stores) do(step m) m {
	answer := m{}
	key, index, value := str(step, "key"), str(step, "index"), str(step, "value")
	given := itemOf(object(step, "object"))
	var err error
	found := func(obj any, ok bool) {
		answer["found"] = ok
		if ok {
			answer["object"] = obj.(*item).as
		}
	}
	objects := func(all []any, failed error) {
		if err = failed; err != nil {
			answer["error"] = "unknown_index"
			return
		}
		told := []any{}
		for _, obj := range all {
			told = append(told, obj.(*item).as)
		}
		sort.Slice(told, func(i, j int) bool { return str(told[i].(m), "key") < str(told[j].(m), "key") })
		answer["objects"] = told
	}
	sorted := func(field string, all []string) { sort.Strings(all); answer[field] = append([]string{}, all...) }
	var reads interface {
		List() []any
		ListKeys() []string
		Index(string, any) ([]any, error)
		IndexKeys(string, string) ([]string, error)
		ByIndex(string, string) ([]any, error)
		ListIndexFuncValues(string) []string
		GetIndexers() cache.Indexers
		AddIndexers(cache.Indexers) error
		Bookmark(string)
		LastStoreSyncResourceVersion() string
	}
	if s.indexer != nil {
		reads = s.indexer
	} else {
		reads = s.safe
	}
	switch op := str(step, "op"); op {
	case "add", "update":
		switch {
		case s.safe != nil && op == "add":
			s.safe.Add(key, given)
		case s.safe != nil:
			s.safe.Update(key, given)
		case op == "add":
			err = s.indexer.Add(given)
		default:
			err = s.indexer.Update(given)
		}
	case "delete":
		switch {
		case s.safe != nil:
			s.safe.Delete(key)
		case yes(step, "tombstone"):
			err = s.indexer.Delete(cache.DeletedFinalStateUnknown{Key: key})
		default:
			err = s.indexer.Delete(given)
		}
	case "replace":
		if s.safe != nil {
			entries := map[string]any{}
			for key, as := range object(step, "entries") {
				entries[key] = itemOf(as.(m))
			}
			s.safe.Replace(entries, str(step, "version"))
		} else {
			var all []any
			for _, as := range list(step, "objects") {
				all = append(all, itemOf(as.(m)))
			}
			err = s.indexer.Replace(all, str(step, "version"))
		}
	case "get":
		if s.safe != nil {
			found(s.safe.Get(key))
		} else {
			obj, ok, _ := s.indexer.Get(given)
			found(obj, ok)
		}
	case "get_by_key":
		if s.safe != nil {
			found(s.safe.Get(key))
		} else {
			obj, ok, _ := s.indexer.GetByKey(key)
			found(obj, ok)
		}
	case "list":
		objects(reads.List(), nil)
	case "list_keys":
		sorted("keys", reads.ListKeys())
	case "index":
		objects(reads.Index(index, given))
	case "by_index":
		objects(reads.ByIndex(index, value))
	case "index_keys":
		keys, failed := reads.IndexKeys(index, value)
		if failed != nil {
			answer["error"] = "unknown_index"
		} else {
			sorted("keys", keys)
		}
	case "list_index_values":
		sorted("values", reads.ListIndexFuncValues(index))
	case "add_indexers":
		if failed := reads.AddIndexers(indexersOf(object(step, "indexers"))); failed != nil {
			answer["error"] = "index_conflict"
		}
	case "indexer_names":
		sorted("names", slices.Collect(maps.Keys(reads.GetIndexers())))
	case "bookmark":
		reads.Bookmark(str(step, "version"))
	case "last_version":
		answer["version"] = reads.LastStoreSyncResourceVersion()
	default:
		panic("unknown operation " + op)
	}
	if err != nil && answer["error"] == nil {
		panic(err)
	}
	return answer
}

func (s *stores) end() {}

func inventStore(r *rand.Rand) (m, []string, func(m) m) {
	functions := []string{"namespace", "name", "field:color", "field:zone", "field:none"}
	indexers := func(n int) m {
		described := m{}
		for range r.Intn(n + 1) {
			described[fmt.Sprintf("i%d", r.Intn(6))] = functions[r.Intn(len(functions))]
		}
		return described
	}
	level := []string{"indexer", "indexer", "thread_safe_store"}[r.Intn(3)]
	safe := level == "thread_safe_store"
	version, made, steps := 0, 0, 60+r.Intn(80)
	key := func() string { return []string{"a/1", "a/2", "b/1", "c", "b/2", "d"}[r.Intn(6)] }
	one := func(key string) m {
		version++
		fields := m{}
		for _, field := range []string{"color", "zone"} {
			if r.Intn(4) > 0 {
				values := []any{}
				for range r.Intn(4) {
					values = append(values, []string{"", "red", "blue", "green", "z/1"}[r.Intn(5)])
				}
				fields[field] = values
			}
		}
		as := m{"key": key, "version": fmt.Sprint(version), "fields": fields}
		if len(fields) == 0 {
			delete(as, "fields")
		}
		return as
	}
	return m{"level": level, "indexers": indexers(4)}, []string{"store_version"}, func(m) m {
		if made++; made > steps {
			return nil
		}
		index, value := fmt.Sprintf("i%d", r.Intn(7)), []string{"", "a", "b", "red", "blue", "z/1", "1", "nope"}[r.Intn(8)]
		step := m{"op": []string{"add", "add", "update", "update", "delete", "replace", "get", "get_by_key", "list", "list_keys", "index", "index", "by_index", "by_index", "index_keys", "index_keys", "list_index_values", "add_indexers", "indexer_names", "bookmark", "last_version", "last_version"}[r.Intn(22)]}
		switch key := key(); str(step, "op") {
		case "add", "update":
			step["object"] = one(key)
			if safe {
				step["key"] = key
			}
		case "delete":
			if safe {
				step["key"] = key
			} else if r.Intn(3) == 0 {
				step["key"], step["tombstone"] = key, true
			} else {
				step["object"] = one(key)
			}
		case "replace":
			if r.Intn(2) == 0 {
				return m{"op": "list"}
			}
			version++
			step["version"] = fmt.Sprint(version + 5)
			entries, objects := m{}, []any{}
			for range r.Intn(6) {
				one := one([]string{"a/1", "a/2", "b/1", "c", "b/2", "d"}[r.Intn(6)])
				entries[str(one, "key")] = one
				objects = append(objects, one)
			}
			if safe {
				step["entries"] = entries
			} else {
				step["objects"] = objects
			}
		case "get":
			if safe {
				step["key"] = key
			} else {
				step["object"] = m{"key": key}
			}
		case "get_by_key":
			step["key"] = key
		case "index":
			step["index"], step["object"] = index, one(key)
		case "by_index", "index_keys":
			step["index"], step["value"] = index, value
		case "list_index_values":
			step["index"] = index
		case "add_indexers":
			step["indexers"] = indexers(2)
		case "bookmark":
			step["version"] = fmt.Sprint(r.Intn(200))
		case "last_version":
			if safe {
				step = m{"op": "list_keys"}
			}
		}
		return step
	}
}
