package manager

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var group = schema.GroupVersion{Group: "harbour.example.com", Version: "v1"}

// Boat is the kind that boats.yaml defines, written by hand as controller-gen would write it.
type Boat struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   BoatSpec   `json:"spec,omitzero"`
	Status BoatStatus `json:"status,omitzero"`
}

type BoatSpec struct {
	Port string `json:"port,omitempty"`
	Crew int32  `json:"crew,omitempty"`
}

type BoatStatus struct {
	Aboard     int32              `json:"aboard,omitempty"`
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

type BoatList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`

	Items []Boat `json:"items"`
}

func addToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(group, &Boat{}, &BoatList{})
	metav1.AddToGroupVersion(scheme, group)
	return nil
}

func (b *Boat) DeepCopy() *Boat {
	copied := *b
	b.ObjectMeta.DeepCopyInto(&copied.ObjectMeta)
	copied.Status.Conditions = slices.Clone(b.Status.Conditions)
	return &copied
}

func (b *Boat) DeepCopyObject() runtime.Object {
	return b.DeepCopy()
}

func (l *BoatList) DeepCopyObject() runtime.Object {
	copied := *l
	l.ListMeta.DeepCopyInto(&copied.ListMeta)
	copied.Items = make([]Boat, len(l.Items))
	for at := range l.Items {
		copied.Items[at] = *l.Items[at].DeepCopy()
	}
	return &copied
}
