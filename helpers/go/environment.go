package skiff

import (
	"errors"
	"io/fs"
	"os"

	"k8s.io/client-go/rest"
)

// Environment looks like controller-runtime's envtest.Environment: its fields have the names and meanings that they have
// there. (envtest itself runs on kubeskiff, too, unchanged, with the programs of `skiff assets`.)
//
//	environment := &skiff.Environment{CRDDirectoryPaths: []string{"../config/crd/bases"}}
//	config, err := environment.Start()
//	defer environment.Stop()
type Environment struct {
	// CRDDirectoryPaths are files or folders with definitions. Those that are not there are passed over, unless
	// ErrorIfCRDPathMissing is set.
	CRDDirectoryPaths []string
	// ErrorIfCRDPathMissing makes a path of CRDDirectoryPaths that is not there an error of Start.
	ErrorIfCRDPathMissing bool
	// AttachControlPlaneOutput copies what the server says to standard error.
	AttachControlPlaneOutput bool
	// KubeConfig is what a kubeconfig file of the administrator has, after Start.
	KubeConfig []byte
	// Config is how to reach the server as its administrator, after Start.
	Config *rest.Config
	// Options say more of the server than envtest has fields for.
	Options []Option

	plane *ControlPlane
}

// Start starts a server, and returns how to reach it.
func (e *Environment) Start() (*rest.Config, error) {
	if e.plane != nil {
		return nil, errors.New("the environment has been started")
	}
	options := append([]Option(nil), e.Options...)
	for _, path := range e.CRDDirectoryPaths {
		_, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) && !e.ErrorIfCRDPathMissing {
			continue
		}
		if err != nil {
			return nil, err
		}
		options = append(options, CRDs(path))
	}
	if e.AttachControlPlaneOutput {
		options = append(options, Output(os.Stderr))
	}
	plane, err := Open(options...)
	if err != nil {
		return nil, err
	}
	e.KubeConfig, err = os.ReadFile(plane.Kubeconfig)
	if err != nil {
		return nil, errors.Join(err, plane.Stop())
	}
	e.plane, e.Config = plane, plane.Config
	return e.Config, nil
}

// Stop ends the server. One that was not started is left alone.
func (e *Environment) Stop() error {
	if e.plane == nil {
		return nil
	}
	plane := e.plane
	e.plane = nil
	return plane.Stop()
}
