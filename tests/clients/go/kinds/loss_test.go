package kinds

import (
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// clearType removes what only JSON tells.
func clearType(object metav1.Object) {
	object.(runtime.Object).GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
}

// fields gives the JSON of a typed object.
func fields(d *drive, object metav1.Object) map[string]any {
	text, err := json.Marshal(object)
	var read map[string]any
	if err == nil {
		err = json.Unmarshal(text, &read)
	}
	if err != nil {
		d.Fatal(err)
	}
	return read
}

// has checks that a typed object has everything that want has. What is empty may be left out.
func (d *drive) has(path string, got, want any) {
	switch want := want.(type) {
	case map[string]any:
		got, _ := got.(map[string]any)
		for key, value := range want {
			if path == "" && (key == "kind" || key == "apiVersion") {
				continue
			}
			d.has(path+"."+key, got[key], value)
		}
	case []any:
		got, _ := got.([]any)
		if len(got) != len(want) {
			d.Errorf("%s: want %v, got %v", path, want, got)
			return
		}
		for index, value := range want {
			d.has(fmt.Sprintf("%s[%d]", path, index), got[index], value)
		}
	default:
		if !reflect.DeepEqual(got, want) && !isEmpty(want) {
			d.Errorf("%s: want %v, got %v", path, want, got)
		}
	}
}

func isEmpty(value any) bool {
	return value == nil || reflect.ValueOf(value).IsZero()
}
