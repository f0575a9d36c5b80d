package recorder

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"sort"
	"strings"
	"sync"
	"syscall"
	"time"

	"testing/synctest"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/features"
	"k8s.io/client-go/tools/cache"
)

// perKey exchanges the informer's queue for the one with one entry to a key.
type perKey struct {
	features.Gates
	on bool
}

func (p *perKey) Enabled(feature features.Feature) bool {
	return !(p.on && feature == features.InOrderInformers) && p.Gates.Enabled(feature)
}

var gates = func() *perKey {
	gates := &perKey{Gates: features.FeatureGates()}
	features.ReplaceFeatureGates(gates)
	return gates
}()

// scripted is a server that answers only when a step says so.
type scripted struct {
	mu       sync.Mutex
	requests []any
	open     string
	answer   chan any
	stream   *scriptedStream
	stopped  bool
	over     bool
	noStream bool
}

type scriptedStream struct {
	server *scripted
	events chan watch.Event
	closed bool
}

func (s *scripted) IsWatchListSemanticsUnSupported() bool { return s.noStream }

func (s *scripted) request(kind string, options metav1.ListOptions) any {
	s.mu.Lock()
	if s.over {
		s.mu.Unlock()
		return errors.New("the script is over")
	}
	if s.open != "" {
		panic("a second request while one is open: " + kind)
	}
	s.requests = append(s.requests, m{
		"kind": kind, "resource_version": options.ResourceVersion, "resource_version_match": string(options.ResourceVersionMatch),
		"limit": options.Limit, "continue": options.Continue, "allow_watch_bookmarks": options.AllowWatchBookmarks,
		"send_initial_events": options.SendInitialEvents != nil && *options.SendInitialEvents,
	})
	s.open = kind
	s.answer = make(chan any)
	answer := s.answer
	s.mu.Unlock()
	return <-answer
}

func (s *scripted) List(options metav1.ListOptions) (runtime.Object, error) {
	switch answer := s.request("list", options).(type) {
	case error:
		return nil, answer
	case *corev1.ConfigMapList:
		return answer, nil
	}
	panic("no answer to a list")
}

func (s *scripted) Watch(options metav1.ListOptions) (watch.Interface, error) {
	switch answer := s.request("watch", options).(type) {
	case error:
		return nil, answer
	case *scriptedStream:
		return answer, nil
	}
	panic("no answer to a watch")
}

// reply answers the request that waits.
func (s *scripted) reply(answer any) {
	s.mu.Lock()
	waiting := s.answer
	if waiting == nil {
		s.mu.Unlock()
		return
	}
	s.answer, s.open = nil, ""
	if stream, ok := answer.(*scriptedStream); ok {
		s.open, s.stream = "stream", stream
	}
	s.mu.Unlock()
	waiting <- answer
}

func (s *scriptedStream) ResultChan() <-chan watch.Event { return s.events }

func (s *scriptedStream) Stop() {
	s.server.mu.Lock()
	defer s.server.mu.Unlock()
	if s.server.stream == s && !s.closed {
		s.server.stopped = true
		s.server.open, s.server.stream = "", nil
	}
}

// handler notes what it is told, when it returns.
type handler struct {
	name         string
	owner        *informers
	gate         chan struct{}
	paused       bool
	registration cache.ResourceEventHandlerRegistration
}

func (h *handler) note(what m) {
	h.owner.mu.Lock()
	gate := h.gate
	h.owner.mu.Unlock()
	if gate != nil {
		<-gate
	}
	h.owner.mu.Lock()
	defer h.owner.mu.Unlock()
	if h.owner.advancing {
		what["at_ns"] = time.Since(h.owner.start).Nanoseconds()
	}
	h.owner.told[h.name] = append(h.owner.told[h.name], what)
}

func (h *handler) OnAdd(obj any, initial bool) {
	h.note(m{"type": "add", "object": shown(obj), "initial": initial})
}
func (h *handler) OnUpdate(old, new any) {
	h.note(m{"type": "update", "object": shown(new), "old": shown(old)})
}
func (h *handler) OnDelete(obj any) {
	what := m{"type": "delete", "tombstone": false}
	if tombstone, ok := obj.(cache.DeletedFinalStateUnknown); ok {
		what["tombstone"], obj = true, tombstone.Obj
	}
	what["object"] = shown(obj)
	h.note(what)
}

func shown(obj any) m {
	one := obj.(*corev1.ConfigMap)
	key, _ := cache.MetaNamespaceKeyFunc(one)
	as := m{"key": key, "version": one.ResourceVersion, "uid": string(one.UID)}
	if note := one.Data["note"]; note != "" {
		as["note"] = note
	}
	return as
}

func hidden(as m) *corev1.ConfigMap {
	namespace, name, found := strings.Cut(str(as, "key"), "/")
	if !found {
		namespace, name = "", namespace
	}
	one := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, ResourceVersion: str(as, "version"), UID: types.UID(str(as, "uid")),
	}}
	if note := str(as, "note"); note != "" {
		one.Data = map[string]string{"note": note}
	}
	return one
}

type informers struct {
	server    *scripted
	informer  cache.SharedIndexInformer
	stop      chan struct{}
	started   bool
	stopping  bool
	start     time.Time
	resync    time.Duration
	watchList bool
	perKey    bool

	mu        sync.Mutex
	advancing bool
	told      map[string][]any
	handlers  map[string]*handler
}

func buildInformer(config m) subject {
	gates.on = str(config, "queue") == "delta"
	i := &informers{
		server: &scripted{noStream: !yes(config, "watch_list")}, stop: make(chan struct{}), start: time.Now(),
		resync: time.Duration(number(config, "resync_ns")), watchList: yes(config, "watch_list"), perKey: gates.on,
		told: map[string][]any{}, handlers: map[string]*handler{},
	}
	i.informer = cache.NewSharedIndexInformerWithOptions(i.server, &corev1.ConfigMap{}, cache.SharedIndexInformerOptions{
		ResyncPeriod: i.resync, Indexers: cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc},
	})
	if str(config, "transform") == "mark" {
		err := i.informer.SetTransform(func(obj any) (any, error) {
			one := obj.(*corev1.ConfigMap).DeepCopy()
			if one.Data["note"] == "poison" {
				return nil, errors.New("a poisoned object")
			}
			one.Data = map[string]string{"note": "marked"}
			return one, nil
		})
		if err != nil {
			panic(err)
		}
	}
	return i
}

func errorOf(as m) error {
	if str(as, "transport") != "" {
		return &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("as the script says: %w", syscall.ECONNREFUSED)}
	}
	status := statusOf(as)
	return &apierrors.StatusError{ErrStatus: *status}
}

func statusOf(as m) *metav1.Status {
	status := &metav1.Status{Status: metav1.StatusFailure, Code: int32(number(as, "code")), Reason: metav1.StatusReason(str(as, "reason"))}
	if cause := str(as, "cause"); cause != "" {
		status.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Type: metav1.CauseType(cause)}}}
	}
	return status
}

func (i *informers) do(step m) m {
	answer := m{}
	op := str(step, "op")
	switch op {
	case "add_handler":
		name := str(step, "handler")
		one := &handler{name: name, owner: i}
		var err error
		if has(step, "resync_ns") {
			one.registration, err = i.informer.AddEventHandlerWithResyncPeriod(one, time.Duration(number(step, "resync_ns")))
		} else {
			one.registration, err = i.informer.AddEventHandler(one)
		}
		if err != nil {
			answer["error"] = "stopped"
		} else {
			i.handlers[name] = one
		}
	case "remove_handler":
		name := str(step, "handler")
		if err := i.informer.RemoveEventHandler(i.handlers[name].registration); err != nil {
			panic(err)
		}
		delete(i.handlers, name)
	case "pause_handler":
		i.mu.Lock()
		i.handlers[str(step, "handler")].gate = make(chan struct{})
		i.mu.Unlock()
	case "resume_handler":
		i.mu.Lock()
		one := i.handlers[str(step, "handler")]
		close(one.gate)
		one.gate = nil
		i.mu.Unlock()
	case "start":
		i.started = true
		go i.informer.Run(i.stop)
	case "stop":
		i.stopping = true
		close(i.stop)
	case "list_ok":
		page := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: str(step, "version"), Continue: str(step, "continue")}}
		for _, as := range list(step, "items") {
			page.Items = append(page.Items, *hidden(as.(m)))
		}
		i.server.reply(page)
	case "list_error", "watch_error":
		i.server.reply(errorOf(object(step, "error")))
	case "watch_ok":
		i.server.reply(&scriptedStream{server: i.server, events: make(chan watch.Event, 1000)})
	case "events":
		stream := i.server.stream
		if stream == nil {
			return m{"no": "stream"}
		}
		for _, as := range list(step, "events") {
			event := as.(m)
			switch kind := str(event, "type"); kind {
			case "BOOKMARK":
				mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{ResourceVersion: str(event, "version")}}
				if yes(event, "initial_events_end") {
					mark.Annotations = map[string]string{metav1.InitialEventsAnnotationKey: "true"}
				}
				stream.events <- watch.Event{Type: watch.Bookmark, Object: mark}
			case "ERROR":
				stream.events <- watch.Event{Type: watch.Error, Object: statusOf(object(event, "error"))}
			default:
				stream.events <- watch.Event{Type: watch.EventType(kind), Object: hidden(object(event, "object"))}
			}
		}
	case "watch_close":
		stream := i.server.stream
		if stream == nil {
			return m{"no": "stream"}
		}
		i.server.mu.Lock()
		stream.closed = true
		i.server.open, i.server.stream = "", nil
		i.server.mu.Unlock()
		close(stream.events)
	case "advance":
		i.mu.Lock()
		i.advancing = true
		i.mu.Unlock()
		time.Sleep(time.Duration(number(step, "by_ns")))
	case "check_store":
		objects := []any{}
		for _, obj := range i.informer.GetIndexer().List() {
			objects = append(objects, shown(obj))
		}
		sort.Slice(objects, func(a, b int) bool { return str(objects[a].(m), "key") < str(objects[b].(m), "key") })
		answer["objects"] = objects
		count := m{}
		for _, namespace := range i.informer.GetIndexer().ListIndexFuncValues(cache.NamespaceIndex) {
			all, _ := i.informer.GetIndexer().ByIndex(cache.NamespaceIndex, namespace)
			if len(all) > 0 {
				count[namespace] = len(all)
			}
		}
		if len(count) > 0 {
			answer["by_namespace"] = count
		}
	default:
		panic("unknown operation " + op)
	}
	synctest.Wait()
	i.answer(step, answer)
	return answer
}

func (i *informers) answer(step, answer m) {
	i.server.mu.Lock()
	if len(i.server.requests) > 0 {
		answer["requests"] = i.server.requests
	}
	if i.server.stopped {
		answer["stream_stopped"] = true
	}
	i.server.requests, i.server.stopped = nil, false
	open := i.server.open
	i.server.mu.Unlock()
	state := "idle"
	switch {
	case !i.started:
		state = "new"
	case i.informer.IsStopped():
		state = "stopped"
	case open != "":
		state = open
	}
	answer["state"] = state
	answer["synced"] = i.informer.HasSynced()
	synced := m{}
	for name, one := range i.handlers {
		synced[name] = one.registration.HasSynced()
	}
	answer["handlers_synced"] = synced
	answer["last_version"] = i.informer.LastSyncResourceVersion()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.advancing = false
	if len(i.told) > 0 {
		notifications := m{}
		for name, told := range i.told {
			notifications[name] = i.loosen(step, told)
		}
		answer["notifications"] = notifications
		i.told = map[string][]any{}
	}
}

// loosen says what of an order is open.
func (i *informers) loosen(step m, told []any) []any {
	op := str(step, "op")
	initialEnd := false
	var keys []string
	for _, event := range list(step, "events") {
		initialEnd = initialEnd || yes(event.(m), "initial_events_end")
		keys = append(keys, str(object(event.(m), "object"), "key"))
	}
	if i.perKey && op == "events" && !initialEnd {
		return interleave(keys, told)
	}
	open := func(one m) string {
		switch {
		case op == "advance":
			return fmt.Sprint("resync", one["at_ns"])
		case yes(one, "tombstone"):
			return "tombstones"
		case initialEnd && (str(one, "type") == "update" || yes(one, "initial") || str(one, "type") == "add"):
			return "listed"
		case op == "add_handler":
			return "late"
		}
		return ""
	}
	var loose []any
	for at := 0; at < len(told); {
		end := at + 1
		if kind := open(told[at].(m)); kind != "" {
			for end < len(told) && open(told[end].(m)) == kind {
				end++
			}
		}
		if end == at+1 {
			loose = append(loose, told[at])
		} else {
			group := m{}
			for _, one := range told[at:end] {
				if instant, ok := one.(m)["at_ns"]; ok {
					group["at_ns"] = instant
					delete(one.(m), "at_ns")
				}
			}
			some := append([]any{}, told[at:end]...)
			sort.Slice(some, func(a, b int) bool { return order(some[a].(m)) < order(some[b].(m)) })
			group["any_order"] = some
			loose = append(loose, group)
		}
		at = end
	}
	return loose
}

func order(one m) string { return str(one, "type") + " " + str(object(one, "object"), "key") }

// interleave opens the order of events whose keys take turns: of keys whose first and last places among the
// events overlap.
func interleave(keys []string, told []any) []any {
	last := map[string]int{}
	for at, key := range keys {
		last[key] = at
	}
	var loose []any
	for at := 0; at < len(keys); {
		end := last[keys[at]]
		together := map[string][]any{}
		var names []string
		for ; at <= end; at++ {
			if _, ok := together[keys[at]]; !ok {
				together[keys[at]] = nil
				names = append(names, keys[at])
			}
			end = max(end, last[keys[at]])
		}
		lists := []any{}
		sort.Strings(names)
		for _, one := range told {
			if key := str(object(one.(m), "object"), "key"); slices.Contains(names, key) {
				together[key] = append(together[key], one)
			}
		}
		for _, key := range names {
			if len(together[key]) > 0 {
				lists = append(lists, together[key])
			}
		}
		if len(lists) > 1 {
			loose = append(loose, m{"interleaved": lists})
		} else if len(lists) == 1 {
			loose = append(loose, lists[0].([]any)...)
		}
	}
	return loose
}

func (i *informers) end() {
	if !i.stopping {
		close(i.stop)
	}
	i.mu.Lock()
	for _, one := range i.handlers {
		if one.gate != nil {
			close(one.gate)
			one.gate = nil
		}
	}
	i.mu.Unlock()
	i.server.mu.Lock()
	i.server.over = true
	waiting := i.server.answer
	i.server.answer = nil
	i.server.mu.Unlock()
	if waiting != nil {
		waiting <- errors.New("the script is over")
	}
	time.Sleep(time.Hour)
}
