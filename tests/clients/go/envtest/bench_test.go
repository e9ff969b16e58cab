package envtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	skiff "github.com/kubeskiff/kubeskiff/helpers/go"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"kubeskiff/tests/clients/go/processes"
)

// Run by `cargo bench --bench envtest`, 20 rounds each.

func BenchmarkEnvironment(bench *testing.B) {
	var started, stopped []time.Duration
	for range bench.N {
		environment := &envtest.Environment{}
		begun := time.Now()
		config, err := environment.Start()
		if err != nil {
			bench.Fatal(err)
		}
		createFirst(bench, config)
		started = append(started, time.Since(begun))
		begun = time.Now()
		if err := environment.Stop(); err != nil {
			bench.Fatal(err)
		}
		stopped = append(stopped, time.Since(begun))
	}
	report(bench, started, stopped)
}

func BenchmarkServe(bench *testing.B) {
	var started, stopped []time.Duration
	for range bench.N {
		begun := time.Now()
		plane, err := skiff.Open()
		if err != nil {
			bench.Fatal(err)
		}
		createFirst(bench, plane.Config)
		started = append(started, time.Since(begun))
		begun = time.Now()
		if err := plane.Stop(); err != nil {
			bench.Fatal(err)
		}
		stopped = append(stopped, time.Since(begun))
	}
	report(bench, started, stopped)
}

// A stop of the API server while there are watches, and a request whose webhook never answers.
func BenchmarkStopWhileBusy(bench *testing.B) {
	var stopped []time.Duration
	for range bench.N {
		busy := startBusy(bench)
		begun := time.Now()
		if err := busy.ControlPlane.GetAPIServer().Stop(); err != nil {
			bench.Fatal(err)
		}
		stopped = append(stopped, time.Since(begun))
		busy.end()
	}
	bench.ReportMetric(0, "ns/op")
	reportTimes(bench, "stop", stopped)
}

// Ten environments at a time, each with an object.
func BenchmarkTenEnvironments(bench *testing.B) {
	var memory []float64
	for range bench.N {
		var environments []*envtest.Environment
		for range 10 {
			environment := &envtest.Environment{}
			config, err := environment.Start()
			if err != nil {
				bench.Fatal(err)
			}
			createFirst(bench, config)
			environments = append(environments, environment)
		}
		memory = append(memory, memoryOfChildren(bench))
		for _, environment := range environments {
			if err := environment.Stop(); err != nil {
				bench.Fatal(err)
			}
		}
	}
	slices.Sort(memory)
	bench.ReportMetric(0, "ns/op")
	bench.ReportMetric(memory[len(memory)/2], "MiB")
}

func createFirst(bench *testing.B, config *rest.Config) {
	admin, err := client.New(config, client.Options{})
	if err != nil {
		bench.Fatal(err)
	}
	first := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "first"}}
	if err := admin.Create(bench.Context(), first); err != nil {
		bench.Fatal(err)
	}
}

// report tells the medians and the worst.
func report(bench *testing.B, started, stopped []time.Duration) {
	bench.ReportMetric(0, "ns/op")
	reportTimes(bench, "start", started)
	reportTimes(bench, "stop", stopped)
}

func reportTimes(bench *testing.B, name string, took []time.Duration) {
	slices.Sort(took)
	millis := func(took time.Duration) float64 { return float64(took.Microseconds()) / 1000 }
	bench.ReportMetric(millis(took[len(took)/2]), "ms-"+name+"-p50")
	bench.ReportMetric(millis(took[len(took)-1]), "ms-"+name+"-max")
}

// memoryOfChildren is what the programs take, what they share counted once.
func memoryOfChildren(bench *testing.B) float64 {
	total := 0
	for _, id := range processes.Children(bench) {
		text, err := os.ReadFile(filepath.Join("/proc", id, "smaps_rollup"))
		if err != nil {
			bench.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var kibibytes int
			if count, _ := fmt.Sscanf(line, "Pss: %d kB", &kibibytes); count == 1 {
				total += kibibytes
			}
		}
	}
	return float64(total) / 1024
}
