package kinds

import (
	"fmt"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
)

// clearType removes what only JSON tells.
func clearType(object metav1.Object) {
	object.(runtime.Object).GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	if set, isSet := object.(*appsv1.StatefulSet); isSet {
		for index := range set.Spec.VolumeClaimTemplates {
			set.Spec.VolumeClaimTemplates[index].TypeMeta = metav1.TypeMeta{}
		}
	}
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
			if isType := key == "kind" || key == "apiVersion"; isType && hasOwnType(path) {
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

// hasOwnType tells whether the type of what stands there is known without being told.
func hasOwnType(path string) bool {
	return path == "" || strings.HasPrefix(path, ".spec.volumeClaimTemplates[") && strings.HasSuffix(path, "]")
}

func isEmpty(value any) bool {
	return value == nil || reflect.ValueOf(value).IsZero()
}
