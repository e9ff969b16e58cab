package envtest

import (
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// What `skiff assets archive` writes is installed by envtest and by setup-envtest, each by its own code.
func TestAnIndexIsInstalledFrom(test *testing.T) {
	index := served(test)
	test.Run("by envtest", func(test *testing.T) { installByEnvtest(test, index) })
	test.Run("by setup-envtest", func(test *testing.T) { installBySetupEnvtest(test, index) })
}

// served is where the archive and the index can be had.
func served(test *testing.T) string {
	test.Helper()
	folder := test.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(folder)))
	test.Cleanup(server.Close)
	out, err := exec.Command(os.Getenv("SKIFF"), "assets", "archive", "--out", folder, "--base-url", server.URL).CombinedOutput()
	if err != nil {
		test.Fatal(err, string(out))
	}
	return server.URL + "/envtest-releases.yaml"
}

func installByEnvtest(test *testing.T, index string) {
	test.Setenv("KUBEBUILDER_ASSETS", "")
	for release, minor := range map[string]string{"v1.37.2": "37", "v1.34.0": "34"} {
		checkMinor(test, minor, &envtest.Environment{
			DownloadBinaryAssets:         true,
			DownloadBinaryAssetsVersion:  release,
			DownloadBinaryAssetsIndexURL: index,
			BinaryAssetsDirectory:        test.TempDir(),
		})
	}
}

// It installs what a minor or the newest release has, and knows it again.
func installBySetupEnvtest(test *testing.T, index string) {
	folder := test.TempDir()
	setup := func(arguments ...string) string {
		test.Helper()
		program, err := os.Executable()
		if err != nil {
			test.Fatal(err)
		}
		// It is built beside this program.
		command := exec.Command(filepath.Join(filepath.Dir(program), "setup-envtest"), append(arguments, "--bin-dir", folder)...)
		told := &strings.Builder{}
		command.Stderr = told
		out, err := command.Output()
		if err != nil {
			test.Fatal(arguments, err, string(out), told)
		}
		return string(out)
	}
	for asked, minor := range map[string]string{"1.34.x": "34", "latest": "37"} {
		assets := setup("use", asked, "--index", index, "--print", "path")
		test.Setenv("KUBEBUILDER_ASSETS", assets)
		checkMinor(test, minor, &envtest.Environment{})
	}
	if again := setup("use", "1.34.x", "--installed-only", "--print", "path"); filepath.Base(again) != "1.34.0-"+runtime.GOOS+"-"+runtime.GOARCH {
		test.Error(again)
	}
	if listed := setup("list", "--index", index); strings.Count(listed, "(installed)") != 2 || !strings.Contains(listed, "v1.29.0") {
		test.Error(listed)
	}
}

func checkMinor(test *testing.T, minor string, environment *envtest.Environment) {
	test.Helper()
	version, err := kubernetes.NewForConfigOrDie(start(test, environment)).ServerVersion()
	if err != nil || version.Minor != minor {
		test.Error(minor, version, err)
	}
}
