# A template: `packages/build homebrew` fills in the version and the checksums.
class Skiff < Formula
  desc "Small Kubernetes API server for tests, and tools for authors of CRDs"
  homepage "https://github.com/kubeskiff/kubeskiff"
  version "${version}"
  license "Apache-2.0"

  on_macos do
    on_arm do
      url "https://github.com/kubeskiff/kubeskiff/releases/download/v${version}/kubeskiff-${version}-aarch64-apple-darwin.tar.gz"
      sha256 "${aarch64_apple_darwin}"
    end
    on_intel do
      url "https://github.com/kubeskiff/kubeskiff/releases/download/v${version}/kubeskiff-${version}-x86_64-apple-darwin.tar.gz"
      sha256 "${x86_64_apple_darwin}"
    end
  end
  on_linux do
    on_arm do
      url "https://github.com/kubeskiff/kubeskiff/releases/download/v${version}/kubeskiff-${version}-aarch64-unknown-linux-gnu.tar.gz"
      sha256 "${aarch64_unknown_linux_gnu}"
    end
    on_intel do
      url "https://github.com/kubeskiff/kubeskiff/releases/download/v${version}/kubeskiff-${version}-x86_64-unknown-linux-gnu.tar.gz"
      sha256 "${x86_64_unknown_linux_gnu}"
    end
  end

  def install
    bin.install "skiff"
    generate_completions_from_executable(bin/"skiff", "completion", shells: [:bash, :zsh, :fish])
    (man1/"skiff.1").write Utils.safe_popen_read(bin/"skiff", "man")
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/skiff --version")
  end
end
