"""More of PyTorch's public names that are not here, by module: what answers for them is in ``_not_yet.py``."""

from __future__ import annotations

MORE: dict[str, str] = {
    "torch": (
        "AVG AggregationType AliasDb AnyType Argument ArgumentSpec AwaitType BenchmarkConfig "
        "BenchmarkExecutionStats Block BoolType BufferDict CallStack Capsule ClassType Code CompilationUnit "
        "CompleteArgumentSpec ComplexType ConcreteModuleType ConcreteModuleTypeBuilder DeepCopyMemoTable "
        "DeserializationStorageContext DeviceObjType DictType DisableTorchFunction DisableTorchFunctionSubclass "
        "DispatchKey DispatchKeySet EnumType ErrorReport ExcludeDispatchKeyGuard ExecutionPlan FatalError "
        "FileCheck FloatType FunctionSchema Future FutureType Gradient Graph GraphExecutorState IODescriptor "
        "InferredType IntType InterfaceType JITException ListType LiteScriptModule LockingLogger LoggerBase "
        "ModuleDict Node NoneType NoopLogger NumberType OperatorInfo OptionalType ParameterDict PyObjectType "
        "PyTorchFileReader PyTorchFileWriter QInt32Storage QInt8Storage QUInt2x4Storage QUInt4x2Storage "
        "QUInt8Storage RRefType SUM ScriptClass ScriptClassFunction ScriptDict ScriptDictIterator "
        "ScriptDictKeyIterator ScriptFunction ScriptList ScriptListIterator ScriptMethod ScriptModule "
        "ScriptModuleSerializer ScriptObject ScriptObjectProperty SerializationStorageContext StaticModule "
        "StorageBase StreamObjType StringType SymBool SymBoolType SymFloat SymIntType Tag TensorType "
        "ThroughputBenchmark TracingState TupleType Type UnionType Use Value ccol_indices_copy col_indices_copy "
        "crow_indices_copy cudnn_affine_grid_generator cudnn_batch_norm cudnn_convolution "
        "cudnn_convolution_add_relu cudnn_convolution_relu cudnn_convolution_transpose cudnn_grid_sampler "
        "cudnn_is_acceptable fbgemm_linear_fp16_weight fbgemm_linear_fp16_weight_fp32_activation "
        "fbgemm_linear_int8_weight fbgemm_linear_int8_weight_fp32_activation fbgemm_linear_quantize_weight "
        "fbgemm_pack_gemm_matrix_fp16 fbgemm_pack_quantized_matrix get_autocast_ipu_dtype get_autocast_xla_dtype "
        "import_ir_module import_ir_module_from_buffer indices_copy init_num_threads is_autocast_ipu_enabled "
        "is_autocast_xla_enabled merge_type_from_type_comment miopen_batch_norm miopen_convolution "
        "miopen_convolution_add_relu miopen_convolution_relu miopen_convolution_transpose miopen_ctc_loss "
        "miopen_depthwise_convolution miopen_rnn mkldnn_adaptive_avg_pool2d mkldnn_convolution "
        "mkldnn_linear_backward_weights mkldnn_max_pool2d mkldnn_max_pool3d parse_ir parse_schema "
        "parse_type_comment per_channel_affine per_channel_affine_float_qparams per_channel_symmetric "
        "per_tensor_affine per_tensor_symmetric prepare_multiprocessing_environment "
        "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12 qscheme quasirandom row_indices_copy "
        "set_autocast_cpu_dtype set_autocast_cpu_enabled set_autocast_gpu_dtype set_autocast_ipu_dtype "
        "set_autocast_ipu_enabled set_autocast_xla_dtype set_autocast_xla_enabled sym_constrain_range "
        "sym_constrain_range_for_size sym_float sym_fresh_size sym_int sym_ite sym_max sym_min sym_not sym_sqrt "
        "sym_sum thread_safe_generator unify_type_list values_copy"
    ),
    "torch.nn.functional": "assert_int_or_pair",
    "torch.nn.utils.rnn": "PackedSequence_ bind",
    "torch.nn.modules": "channelshuffle linear_cross_entropy_options utils",
    "torch.nn.attention": "WARN_FOR_UNFUSED_KERNELS",
    "torch.autograd": "NestedIOFunction",
    "torch.cuda.amp": "amp_definitely_not_available grad_scaler",
    "torch.cuda.nvtx": "range_end range_start",
    "torch.backends": "cusparselt kleidiai miopen python_native",
    "torch.backends.mkl": "verbose",
    "torch.backends.cuda": (
        "SDPAParams allow_fp16_bf16_reduction_math_sdp blas_workspace_size can_use_cudnn_attention "
        "can_use_efficient_attention can_use_flash_attention cuBLASModule cuFFTPlanCache "
        "cuFFTPlanCacheAttrContextProp cuFFTPlanCacheManager cublas_workspace_size cublaslt_workspace_size "
        "cufft_plan_cache fp16_bf16_reduction_math_sdp_allowed is_ck_sdpa_available is_flash_attention_available "
        "preferred_blas_library preferred_linalg_library preferred_rocm_fa_library sdp_kernel"
    ),
    "torch.backends.mps": "get_core_count get_name is_macos13_or_newer is_macos_or_newer",
    "torch.testing": "assert_allclose",
    "torch.multiprocessing": "SpawnContext init_reductions reductions",
    "torch.serialization": (
        "SourceChangeWarning StorageType check_module_version_greater_or_equal default_restore_location "
        "location_tag mkdtemp normalize_storage_type storage_to_tensor_type validate_cuda_device "
        "validate_hpu_device"
    ),
    "torch.cpu": "Event get_capabilities",
    "torch.accelerator": "graphs memory",
    "torch.fx": "CodeGen ProxyableClassMeta config experimental operator_schemas tensor_type traceback",
    "torch.export": (
        "AdditionalInputs CustomDecompTable ExportBackwardSignature FlatArgsAdapter ModuleCallEntry "
        "ModuleCallSignature ShapesCollection UnflattenedModule custom_ops decomp_utils default_decompositions "
        "draft_export dynamic_shapes exported_program graph_signature register_dataclass unflatten"
    ),
    "torch.jit": (
        "Future ONNXTracedModule RecursiveScriptClass ScriptWarning TracedModule TracingCheckError export_opnames "
        "fuser jit_module_from_flatbuffer onednn_fusion_enabled optimized_execution run_frozen_optimizations "
        "save_jit_module_to_flatbuffer script_if_tracing"
    ),
    "torch.onnx": (
        "ExportableModule InputObserver JitScalarType errors ops register_custom_op_symbolic "
        "select_model_mode_for_export unregister_custom_op_symbolic"
    ),
    "torch.utils": (
        "backcompat cpp_backtrace generate_methods_for_privateuse1_backend get_cpp_backtrace "
        "rename_privateuse1_backend set_module swap_tensors"
    ),
    "torch.utils.hooks": "BackwardHook unserializable_hook warn_if_has_hooks",
    "torch.utils.flop_counter": (
        "get_shape normalize_tuple sdpa_backward_flop sdpa_backward_flop_count sdpa_flop sdpa_flop_count"
    ),
    "torch.utils._pytree": (
        "ConstantNode EnumEncoder K KeyEntry S U arg_tree_leaves enum_object_hook is_constant_class pytree_to_str "
        "register_constant register_dataclass str_to_pytree structseq treespec_dict treespec_leaf treespec_tuple"
    ),
    "torch.utils._python_dispatch": (
        "AliasInfo BaseTorchDispatchMode SchemaInfo TensorWithFlatten TraceableWrapperSubclass "
        "any_torch_dispatch_mode_on_stack autograd_would_have_decomposed get_alias_info "
        "is_in_any_mode_without_ignore_compile_internals is_in_torch_dispatch_mode transform_subclass"
    ),
    "torch.distributed": "GroupName",
    "torch.cuda.graphs": "graph_pool_handle is_current_stream_capturing make_graphed_callables",
    "torch._dynamo": (
        "GenerationTracker OptimizedModule TensorifyState allow_c_slot aot_compile aot_compile_types "
        "assume_constant_result backends bytecode_analysis bytecode_debugger bytecode_transformation cache_size "
        "callback callback_handler code_context codegen compiled_autograd comprehension_graph_break comptime "
        "convert_frame create_parameter_op current_scope_id decorators device_interface "
        "disable_nested_graph_breaks disallow_in_graph distributed dont_skip_tracing dynamo_profiler "
        "error_on_graph_break eval_frame export external_utils forbid_in_graph funcname_cache functional_export "
        "get_recursion_limit graph_break_hints graph_bytecode_inputs graph_deduplication graph_id_filter "
        "graph_region_tracker graph_utils guards is_dynamo_disable_recursive is_dynamo_supported "
        "is_inductor_supported logging mark_static_address metrics_context mutation_guard nonstrict_trace "
        "on_compile_end on_compile_start optimize_assert orig_code_map output_graph override_cudagraphs "
        "override_optimization_hint package patch_dynamo_config pgo polyfills "
        "register_hook_for_recompile_user_context replay replay_record reset_code_caches reset_code_state "
        "reset_frame_count reset_recompile_user_contexts resume_execution run set_recursion_limit set_stance "
        "side_effects skip_frame source step_unsupported substitute_in_graph symbolic_convert trace_rules types "
        "variables"
    ),
    "torch._ops": (
        "HigherOrderOperator OperatorBase TorchBindOpOverload add_cached_op dl_open_guard get_cached_ops "
        "key_extractor mode_stack_state_for_pre_dispatch reset_cached_ops resolve_key unset_mode_pre_dispatch"
    ),
}  # fmt: skip
