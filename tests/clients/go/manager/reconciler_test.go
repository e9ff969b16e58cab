package manager

import (
	"context"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	applycorev1 "k8s.io/client-go/applyconfigurations/core/v1"
	applymetav1 "k8s.io/client-go/applyconfigurations/meta/v1"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	finalizer = "harbour.example.com/crew-list"
	// byPort is both an index of the cache and a field that the server can select by.
	byPort = "spec.port"
	// keyOf is the label of the secrets that are keys of a boat.
	keyOf = "harbour.example.com/key-of"
)

// reconciler keeps for each boat a crew list that it owns, an account for its captain, and the status.
type reconciler struct {
	client.Client
	events events.EventRecorder
}

// setUp adds the controller to a manager.
func setUp(manager ctrl.Manager) error {
	err := manager.GetFieldIndexer().IndexField(context.Background(), &Boat{}, byPort, func(object client.Object) []string {
		return []string{object.(*Boat).Spec.Port}
	})
	if err != nil {
		return err
	}
	isKey := predicate.NewPredicateFuncs(func(object client.Object) bool { return object.GetLabels()[keyOf] != "" })
	boatOf := func(_ context.Context, key client.Object) []ctrl.Request {
		name := types.NamespacedName{Namespace: key.GetNamespace(), Name: key.GetLabels()[keyOf]}
		return []ctrl.Request{{NamespacedName: name}}
	}
	// Two managers of one process have controllers of one name.
	skipNameValidation := true
	return ctrl.NewControllerManagedBy(manager).
		For(&Boat{}, builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Owns(&corev1.ConfigMap{}).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(boatOf), builder.WithPredicates(isKey)).
		WithOptions(controller.Options{SkipNameValidation: &skipNameValidation}).
		Complete(&reconciler{manager.GetClient(), manager.GetEventRecorder("harbour")})
}

func (r *reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	boat := &Boat{}
	if err := r.Get(ctx, request.NamespacedName, boat); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if !boat.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, r.scrap(ctx, boat)
	}
	if controllerutil.AddFinalizer(boat, finalizer) {
		if err := r.Update(ctx, boat); err != nil {
			return ctrl.Result{}, err
		}
	}
	for _, step := range []func(context.Context, *Boat) error{r.listCrew, r.appointCaptain, r.report} {
		if err := step(ctx, boat); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

func (r *reconciler) listCrew(ctx context.Context, boat *Boat) error {
	list := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: boat.Namespace, Name: boat.Name}}
	done, err := controllerutil.CreateOrUpdate(ctx, r, list, func() error {
		list.Data = map[string]string{"crew": strconv.Itoa(int(boat.Spec.Crew))}
		return controllerutil.SetControllerReference(boat, list, r.Scheme())
	})
	if done == controllerutil.OperationResultCreated {
		r.events.Eventf(boat, list, corev1.EventTypeNormal, "Listed", "ListCrew", "%d are on the list", boat.Spec.Crew)
	}
	return err
}

func (r *reconciler) appointCaptain(ctx context.Context, boat *Boat) error {
	owner := applymetav1.OwnerReference().
		WithAPIVersion(group.String()).WithKind("Boat").WithName(boat.Name).WithUID(boat.UID)
	captain := applycorev1.ServiceAccount(boat.Name, boat.Namespace).
		WithAnnotations(map[string]string{"port": boat.Spec.Port}).WithOwnerReferences(owner)
	return r.Apply(ctx, captain, client.FieldOwner("harbour"), client.ForceOwnership)
}

func (r *reconciler) report(ctx context.Context, boat *Boat) error {
	keys := &metav1.PartialObjectMetadataList{}
	keys.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
	if err := r.List(ctx, keys, client.InNamespace(boat.Namespace), client.MatchingLabels{keyOf: boat.Name}); err != nil {
		return err
	}
	before := boat.DeepCopy()
	boat.Status.Aboard = boat.Spec.Crew
	locked := metav1.Condition{Type: "Locked", Status: metav1.ConditionFalse, Reason: "NoKey", ObservedGeneration: boat.Generation}
	if len(keys.Items) > 0 {
		locked.Status, locked.Reason = metav1.ConditionTrue, "Key"
	}
	meta.SetStatusCondition(&boat.Status.Conditions, locked)
	return r.Status().Patch(ctx, boat, client.MergeFrom(before))
}

// scrap removes the crew list of a boat, then its finalizer. Its captain goes by itself, as the boat owns the account.
func (r *reconciler) scrap(ctx context.Context, boat *Boat) error {
	list := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: boat.Namespace, Name: boat.Name}}
	if err := r.Delete(ctx, list); client.IgnoreNotFound(err) != nil {
		return err
	}
	before := boat.DeepCopy()
	if controllerutil.RemoveFinalizer(boat, finalizer) {
		return r.Patch(ctx, boat, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}
	return nil
}
