package envtest

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

const watchesOfBusy = 20

// busy is an environment whose API server has watches to serve, and a request that waits for a webhook.
type busy struct {
	*envtest.Environment
	watches []watch.Interface
	// answer gives what became of the request.
	answer chan error
	// end lets everything go.
	end func()
}

func startBusy(test testing.TB) busy {
	environment := &envtest.Environment{CRDInstallOptions: crds, WebhookInstallOptions: asksAbout("/hangs")}
	config, err := environment.Start()
	if err != nil {
		test.Fatal(err)
	}
	asked, ends := hang(test, environment.WebhookInstallOptions)
	ctx, cancel := context.WithCancel(test.Context())
	started := busy{Environment: environment, answer: make(chan error, 1), end: func() {
		cancel()
		ends()
		if err := environment.Stop(); err != nil {
			test.Error(err)
		}
	}}
	boats := dynamic.NewForConfigOrDie(config).
		Resource(schema.GroupVersionResource{Group: "harbour.example.com", Version: "v1", Resource: "boats"})
	for range watchesOfBusy {
		watch, err := boats.Watch(ctx, metav1.ListOptions{})
		if err != nil {
			test.Fatal(err)
		}
		started.watches = append(started.watches, watch)
	}
	admin := newClient(test, config)
	go func() { started.answer <- admin.Create(ctx, newBoat("ark")) }()
	<-asked
	return started
}

// hang serves where envtest has webhooks called, and answers nothing until it is to end.
func hang(test testing.TB, options envtest.WebhookInstallOptions) (asked <-chan struct{}, end func()) {
	pair := func(name string) string { return filepath.Join(options.LocalServingCertDir, name) }
	certificate, err := tls.LoadX509KeyPair(pair("tls.crt"), pair("tls.key"))
	if err != nil {
		test.Fatal(err)
	}
	address := net.JoinHostPort(options.LocalServingHost, strconv.Itoa(options.LocalServingPort))
	listener, err := tls.Listen("tcp", address, &tls.Config{Certificates: []tls.Certificate{certificate}})
	if err != nil {
		test.Fatal(err)
	}
	told, over := make(chan struct{}, 1), make(chan struct{})
	server := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		told <- struct{}{}
		<-over
	})}
	go server.Serve(listener)
	return told, func() {
		close(over)
		server.Close()
	}
}

// What is under way does not keep it: it would be told of a stop that took too long.
func TestAStopWaitsForNobody(test *testing.T) {
	busy := startBusy(test)
	defer busy.end()
	if err := busy.ControlPlane.GetAPIServer().Stop(); err != nil {
		test.Fatal(err)
	}
	if err := <-busy.answer; err == nil {
		test.Error("the webhook has never answered")
	}
	for _, watch := range busy.watches {
		if event, open := <-watch.ResultChan(); open {
			test.Error(event)
		}
	}
}
