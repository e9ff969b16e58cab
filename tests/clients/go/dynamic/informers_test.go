package dynamic

import (
	"context"
	"net/http"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apiextensionsinformers "k8s.io/apiextensions-apiserver/pkg/client/informers/externalversions"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/tools/cache"

	"kubeskiff/tests/clients/go/eventually"
)

// Typed informers of every built-in kind begin with a streaming list in protobuf.
func TestTypedInformers(test *testing.T) {
	config, _ := harbour(test)
	core := informers.NewSharedInformerFactory(kubernetes.NewForConfigOrDie(config), 0)
	extensions := apiextensionsinformers.NewSharedInformerFactory(apiextensions.NewForConfigOrDie(config), 0)
	of := map[string]cache.SharedIndexInformer{
		"namespaces":                core.Core().V1().Namespaces().Informer(),
		"configmaps":                core.Core().V1().ConfigMaps().Informer(),
		"secrets":                   core.Core().V1().Secrets().Informer(),
		"serviceaccounts":           core.Core().V1().ServiceAccounts().Informer(),
		"events":                    core.Core().V1().Events().Informer(),
		"events.events.k8s.io":      core.Events().V1().Events().Informer(),
		"leases":                    core.Coordination().V1().Leases().Informer(),
		"customresourcedefinitions": extensions.Apiextensions().V1().CustomResourceDefinitions().Informer(),
	}
	stop := make(chan struct{})
	defer func() {
		close(stop)
		core.Shutdown()
		extensions.Shutdown()
	}()
	core.Start(stop)
	extensions.Start(stop)
	for what, informer := range of {
		if !cache.WaitForCacheSync(test.Context().Done(), informer.HasSynced) {
			test.Error(what)
		}
	}
	for what, key := range map[string]string{
		"namespaces": namespace, "configmaps": namespace + "/kube-root-ca.crt", "customresourcedefinitions": boats.GroupResource().String(),
	} {
		if _, has, err := of[what].GetStore().GetByKey(key); !has {
			test.Error(what, "lack", key, err)
		}
	}
}

// Informers of every sort begin with a streaming list, and follow.
func TestInformers(test *testing.T) {
	config, client := harbour(test)
	var lists, streams atomic.Int32
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTrip(func(request *http.Request) (*http.Response, error) {
			switch query := request.URL.Query(); {
			case request.Method != http.MethodGet:
			case query.Get("sendInitialEvents") == "true":
				streams.Add(1)
			case query.Get("watch") == "":
				lists.Add(1)
			}
			return next.RoundTrip(request)
		})
	})
	core := kubernetes.NewForConfigOrDie(config)
	launch(test, client, numbered(100)...)

	ctx, stop := context.WithCancel(test.Context())
	untyped := dynamicinformer.NewDynamicSharedInformerFactory(dynamic.NewForConfigOrDie(config), 0)
	onlyMetadata := metadatainformer.NewSharedInformerFactory(metadata.NewForConfigOrDie(config), 0)
	typed := informers.NewSharedInformerFactory(core, 0)
	of := map[string]cache.SharedIndexInformer{
		"dynamic":            untyped.ForResource(boats).Informer(),
		"metadata":           onlyMetadata.ForResource(boats).Informer(),
		"dynamic, built-in":  untyped.ForResource(configMaps).Informer(),
		"metadata, built-in": onlyMetadata.ForResource(configMaps).Informer(),
		"typed":              typed.Core().V1().ConfigMaps().Informer(),
	}
	defer func() {
		stop()
		untyped.Shutdown()
		onlyMetadata.Shutdown()
		typed.Shutdown()
	}()
	untyped.Start(ctx.Done())
	onlyMetadata.Start(ctx.Done())
	typed.Start(ctx.Done())
	for what, informer := range of {
		if !cache.WaitForCacheSync(test.Context().Done(), informer.HasSynced) {
			test.Fatal(what)
		}
	}
	test.Run("begin with what there is", func(test *testing.T) {
		for _, what := range []string{"dynamic", "metadata"} {
			if count := len(of[what].GetStore().List()); count != 100 {
				test.Error(what, count)
			}
		}
		if lists.Load() != 0 || int(streams.Load()) != len(of) {
			test.Error(lists.Load(), "lists,", streams.Load(), "streams")
		}
	})
	test.Run("follow", func(test *testing.T) {
		launch(test, client, "late")
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "late"}, Data: map[string]string{"a": "b"}}
		if _, err := core.CoreV1().ConfigMaps(namespace).Create(ctx, made, metav1.CreateOptions{}); err != nil {
			test.Fatal(err)
		}
		for what, informer := range of {
			eventually.Holds(test, what+" has it", func(context.Context) (bool, error) {
				_, has, err := informer.GetStore().GetByKey(namespace + "/late")
				return has, err
			})
		}
		background := metav1.DeletePropagationBackground
		options := metav1.DeleteOptions{PropagationPolicy: &background}
		if err := client.DeleteCollection(ctx, options, metav1.ListOptions{LabelSelector: "name notin (late)"}); err != nil {
			test.Fatal(err)
		}
		if err := core.CoreV1().ConfigMaps(namespace).Delete(ctx, "late", options); err != nil {
			test.Fatal(err)
		}
		for what, informer := range of {
			eventually.Holds(test, what+" has lost it", func(context.Context) (bool, error) {
				_, has, err := informer.GetStore().GetByKey(namespace + "/late")
				isBoats := what == "dynamic" || what == "metadata"
				return has == isBoats && (!isBoats || len(informer.GetStore().List()) == 1), err
			})
		}
	})
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(request *http.Request) (*http.Response, error) {
	return f(request)
}
