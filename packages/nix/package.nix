# skiff, built from this source: `pkgs.callPackage ./packages/nix/package.nix { }`.
{ lib, rustPlatform, installShellFiles }:

let
  manifest = lib.importTOML ../../Cargo.toml;
in
rustPlatform.buildRustPackage {
  pname = "kubeskiff";
  version = manifest.workspace.package.version;

  src = lib.cleanSource ../..;
  cargoLock.lockFile = ../../Cargo.lock;
  cargoBuildFlags = [ "--bin" "skiff" ];

  # The tests start databases and clients of other ecosystems.
  doCheck = false;

  nativeBuildInputs = [ installShellFiles ];
  postInstall = ''
    installShellCompletion --cmd skiff \
      --bash <($out/bin/skiff completion bash) \
      --zsh <($out/bin/skiff completion zsh) \
      --fish <($out/bin/skiff completion fish)
    $out/bin/skiff man > skiff.1
    installManPage skiff.1
  '';

  meta = {
    inherit (manifest.package) description;
    homepage = manifest.package.repository;
    license = lib.licenses.asl20;
    mainProgram = "skiff";
    platforms = lib.platforms.unix;
  };
}
