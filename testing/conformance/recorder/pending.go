package recorder

import (
	"reflect"
	"unsafe"

	"k8s.io/client-go/tools/cache"
)

// pending counts the entries that wait, which a queue of deltas does not tell.
func pending(queue cache.Queue) int {
	value := reflect.ValueOf(queue).Elem()
	name := "items"
	if value.FieldByName("queue").IsValid() {
		name = "queue"
	}
	field := value.FieldByName(name)
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem().Len()
}
